"""Play histories: `python -m tests.histories --seeds 0-1000`, or the text of one to replay it.

`--page FILE` prints what docs/reliability.md says of the campaigns that have added up in a file.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from time import perf_counter

from tests.histories.campaign import REPORTED, campaign, reported
from tests.histories.coverage import Coverage, load_coverage
from tests.histories.history import History, play


def main() -> int:
    arguments = _arguments()
    if arguments.page is not None:
        print(load_coverage(arguments.page).page())
        return 0
    if arguments.history:
        played = play(History.parse(arguments.history))
        print(reported(played))
        return bool(played.failure)
    return _campaign(arguments)


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.histories")
    parser.add_argument("history", nargs="?", help="what a failure has printed")
    parser.add_argument("--seeds", default="0-100", help="from the first to before the last")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes play")
    parser.add_argument("--without", default="", help="operations and checks to leave out")
    parser.add_argument("--into", type=Path, help="the file in which campaigns add up")
    parser.add_argument("--page", type=Path, help="such a file, to be printed as a page has it")
    return parser.parse_args()


def _campaign(arguments: Namespace) -> int:
    first, _, last = arguments.seeds.partition("-")
    without = frozenset(filter(None, arguments.without.split(",")))
    coverage, sorts, began = Coverage(), Counter[str](), perf_counter()
    for part in campaign(range(int(first), int(last)), jobs=arguments.jobs, without=without):
        coverage.merge(part.coverage)
        for seed, played in part.failed:
            sorts[played.sort] += 1
            if sorts[played.sort] <= REPORTED:
                print(reported(played, seed), end="\n\n", flush=True)
    print(coverage.markdown())
    print(f"\n{perf_counter() - began:.0f} s")
    if arguments.into is not None:
        coverage.save(arguments.into)
        print(f"\nAll campaigns in {arguments.into}: {load_coverage(arguments.into).histories:,}.")
    return bool(coverage.failures)


if __name__ == "__main__":
    sys.exit(main())
