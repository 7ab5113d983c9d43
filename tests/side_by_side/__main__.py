"""Race: `python -m tests.side_by_side --seeds 0-1000`, or `--seed 17` to replay one.

`--page FILE` prints what docs/reliability.md says of the campaigns that have added up in a file.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from time import perf_counter

from tests.side_by_side.campaign import Figures, campaign, load_figures
from tests.side_by_side.race import Race, RaceKind
from tests.simulation.locks import LockKind

REPORTED = 2


def main() -> int:
    arguments = _arguments()
    if arguments.page is not None:
        print(load_figures(arguments.page).page())
        return 0
    without = frozenset(filter(None, arguments.without.split(",")))
    kind = RaceKind(LockKind(arguments.lock), without=without)
    if arguments.seed is not None:
        return _replay(kind, arguments.seed)
    return _campaign(kind, arguments)


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.side_by_side")
    parser.add_argument("--seeds", default="0-100", help="from the first to before the last")
    parser.add_argument("--seed", type=int, help="one, of which all is told")
    parser.add_argument("--lock", default=str(LockKind.KEPT), help="kept, leased or none")
    parser.add_argument("--without", default="", help="deeds to leave out")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes play")
    parser.add_argument("--into", type=Path, help="the file in which campaigns add up")
    parser.add_argument("--page", type=Path, help="such a file, to be printed as a page has it")
    return parser.parse_args()


def _replay(kind: RaceKind, seed: int) -> int:
    race = Race(kind, seed)
    try:
        race.play()
    finally:
        print(*race.trace, f"{race.table_kind}", race.reported(), sep="\n")
    return 0


def _campaign(kind: RaceKind, arguments: Namespace) -> int:
    first, _, last = arguments.seeds.partition("-")
    figures, sorts, began = Figures(), Counter[str](), perf_counter()
    for part in campaign(kind, range(int(first), int(last)), jobs=arguments.jobs):
        figures.tally.update(part.figures.tally)
        for broken in part.broken:
            sorts[broken.sort] += 1
            if sorts[broken.sort] <= REPORTED:
                print(broken.reported, end="\n\n", flush=True)
    print(figures.markdown(), f"{perf_counter() - began:.0f} s", sep="\n\n")
    if arguments.into is not None:
        print(f"All campaigns in {arguments.into}: {figures.save(arguments.into):,} races.")
    return bool(sorts)


if __name__ == "__main__":
    sys.exit(main())
