"""Pair: `python -m tests.pairs mor`, or `--pair "upsert, roll back" --at 16` to replay one."""

import logging
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from random import Random
from time import monotonic

from tests.histories.remembered import remembering
from tests.pairs.calls import CHANGES, READS
from tests.pairs.pair import DONE, SHAPES, Pairs

REPORTED = 2


def main() -> int:
    arguments = _arguments()
    logging.disable()
    with remembering():
        return _replay(arguments) if arguments.pair else _campaign(arguments)


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.pairs")
    parser.add_argument("kind", choices=SHAPES)
    parser.add_argument("--seed", type=int, default=0, help="in which order, and at which calls")
    parser.add_argument("--seconds", type=float, default=600, help="for how long to go on")
    parser.add_argument("--every", type=int, default=30, help="at one in so many storage calls")
    parser.add_argument("--pair", help="two calls with a comma between them")
    parser.add_argument("--at", type=int, default=1, help="after which storage call of the first")
    return parser.parse_args()


def _replay(arguments: Namespace) -> int:
    first, second = (one.strip() for one in arguments.pair.split(","))
    played = Pairs(arguments.kind).play(first, second, arguments.at)
    if played is None:
        print(f"{first} makes fewer storage calls.")
        return 0
    print(f"{first}: {played.first}; {second}: {played.second}", *played.wrong, sep="\n")
    return bool(played.wrong)


def _campaign(arguments: Namespace) -> int:
    chance, pairs = Random(arguments.seed), Pairs(arguments.kind)
    drawn = [(first, second) for first in (*CHANGES, *READS) for second in CHANGES]
    chance.shuffle(drawn)
    until, plays, wrong, ends = monotonic() + arguments.seconds, 0, Counter[str](), Counter[str]()
    met = 0
    for first, second in drawn:
        if monotonic() > until:
            break
        met += 1
        at = chance.randrange(1, arguments.every)
        while (played := pairs.play(first, second, at)) is not None:
            plays += 1
            ends.update({f"{first}: {played.first}"} - {f"{first}: {DONE}"})
            if played.wrong:
                wrong[f"{first}, {second}"] += 1
                if wrong[f"{first}, {second}"] <= REPORTED:
                    print(f'{arguments.kind} --pair "{first}, {second}" --at {at}:')
                    print(*played.wrong, sep="\n", end="\n\n", flush=True)
            at += arguments.every
    print(f"{plays} plays of {met} of {len(drawn)} pairs, {sum(wrong.values())} wrong.")
    print("Refused:", ", ".join(f"{end} {count}" for end, count in ends.most_common()))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
