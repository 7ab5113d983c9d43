"""Play histories: `python -m tests.histories 1000`, `... 500-600`, or the text of one."""

import sys
from collections import Counter
from time import perf_counter

from tests.histories.history import History, Played, play
from tests.histories.shrink import shrunk


def told(played: Played) -> str:
    return "\n".join(
        [
            f"# {played.history.kind}",
            *played.told,
            played.failure,
            f"replay: python -m tests.histories '{played.history}'",
        ]
    )


def main(words: list[str]) -> None:
    if "/" in words[0]:
        played = play(History.parse(words[0]))
        print(told(played))
        return
    first, _, last = words[0].rpartition("-")
    without = frozenset(words[1].split(",")) if len(words) > 1 else frozenset()
    sorts: Counter[str] = Counter()
    began = perf_counter()
    seeds = range(int(first or 0), int(last))
    for seed in seeds:
        played = play(History.drawn(seed, without=without))
        if not played.failure:
            continue
        sorts[played.sort] += 1
        if sorts[played.sort] <= 2:
            print(f"\n## seed {seed}\n{told(shrunk(played))}", flush=True)
    print(f"{len(seeds)} histories in {perf_counter() - began:.0f} s, {sorts.total()} failures")
    for sort, count in sorts.most_common():
        print(f"{count:5d} {sort}")


if __name__ == "__main__":
    main(sys.argv[1:])
