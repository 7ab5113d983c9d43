"""Race: `python -m tests.side_by_side --seeds 0-1000`, or `--seed 17 --steps` to replay one."""

import sys
from argparse import ArgumentParser
from collections import Counter
from time import perf_counter

from tests.side_by_side.race import Race, RaceKind
from tests.simulation.locks import LockKind
from tests.simulation.scheduler import Counts

TOLD = 2


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.side_by_side")
    parser.add_argument("--seeds", default="0-100", help="from the first to before the last")
    parser.add_argument("--seed", type=int, help="one, whose failure is told in full")
    parser.add_argument("--steps", action="store_true", help="tell all steps of that one")
    parser.add_argument("--lock", default=str(LockKind.KEPT), help="kept, leased or none")
    parser.add_argument("--without", default="", help="services to leave out")
    arguments = parser.parse_args()
    without = frozenset(filter(None, arguments.without.split(",")))
    kind = RaceKind(LockKind(arguments.lock), without=without)
    first, _, last = arguments.seeds.partition("-")
    seeds = range(int(first), int(last)) if arguments.seed is None else [arguments.seed]
    counts, sorts, began = Counts(), Counter[str](), perf_counter()
    for seed in seeds:
        race = Race(kind, seed)
        try:
            counts.add(race.play())
        except BaseException as broken:
            sort = " ".join(str(broken).split()[:3])
            sorts[sort] += 1
            if sorts[sort] <= TOLD:
                steps = "\n".join(map(str, race.trace)) if arguments.steps else ""
                print(
                    f"seed {seed}, {race.table_kind}: {broken!r}\n{race.told()}\n{steps}",
                    flush=True,
                )
    print(counts, f"{perf_counter() - began:.0f} s", *sorts.most_common(), sep="\n")
    return bool(sorts)


if __name__ == "__main__":
    sys.exit(main())
