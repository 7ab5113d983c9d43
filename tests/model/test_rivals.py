"""Rivals: in every order of their steps somebody survives, and little is written in vain."""

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest

from tests.model.exploration import explore_all
from tests.model.rival_model import (
    GIVING_WAY,
    Lack,
    Race,
    Rule,
    State,
    broken,
    start_of,
    steps_from,
)

PLANS = [
    ("a", "a"),
    ("ab", "ba"),
    ("x", "abcx"),
    ("abcx", "x"),
    ("ab", "bc", "ca"),
    ("a", "a", "a"),
]
BOTH = (Rule.OLDER, Rule.FIRST)


def worst(race: Race, of: Callable[[State], int]) -> int:
    """The most that any state that can be reached has of something."""
    found = [0]

    def seen(state: State, steps: list[tuple[str, State]]) -> str | None:
        found[0] = max(found[0], of(state))
        return broken(state, steps)

    explored = explore_all(start_of(race), partial(steps_from, race=race), seen)
    assert explored.wrong is None, explored
    return found[0]


def vain(state: State) -> int:
    return max(one.vain for one in state.writers)


def late(state: State) -> int:
    return sum(one.at == "late" for one in state.writers)


def ended_early(state: State) -> int:
    return sum(one.at in ("early", GIVING_WAY) for one in state.writers)


@pytest.mark.parametrize("plans", PLANS, ids="-".join)
def test_somebody_survives_whatever_rules_the_writers_have(plans: tuple[str, ...]) -> None:
    for rules in product(Rule, repeat=len(plans)):
        worst(Race(plans, rules), vain)


@pytest.mark.parametrize("plans", [plans for plans in PLANS if len(plans) == 2], ids="-".join)
def test_nobody_waits_for_the_dead_for_ever(plans: tuple[str, ...]) -> None:
    for rules in product(Rule, repeat=2):
        worst(Race(plans, rules, has_crashes=True), vain)


@pytest.mark.parametrize("plans", PLANS, ids="-".join)
def test_where_the_older_one_stays_at_most_one_file_is_begun_in_vain(
    plans: tuple[str, ...],
) -> None:
    assert worst(Race(plans, (Rule.OLDER,) * len(plans)), vain) <= 1


@pytest.mark.parametrize("plans", PLANS, ids="-".join)
def test_where_the_first_one_stays_no_file_is_begun_in_vain_and_no_commit_fails(
    plans: tuple[str, ...],
) -> None:
    race = Race(plans, (Rule.FIRST,) * len(plans))
    assert worst(race, vain) == 0
    assert worst(race, late) == 0


@pytest.mark.parametrize("rules", list(product(Rule, repeat=3)))
def test_nobody_gives_way_who_shares_nothing(rules: tuple[Rule, ...]) -> None:
    assert worst(Race(("ab", "c", "d"), rules), ended_early) == 0


def test_without_the_lock_a_commit_fails_late() -> None:
    race = Race(("ab", "ba"), (Rule.FIRST, Rule.FIRST))
    assert worst(race._replace(lack=Lack.LOCK), late) == 1


def test_without_looking_for_commits_all_files_are_begun_in_vain() -> None:
    race = Race(("abcx", "x"), (Rule.OLDER, Rule.OFF))
    assert worst(race, vain) == 1
    assert worst(race._replace(lack=Lack.COMMITS), vain) > 1


def test_without_looking_again_all_files_are_begun_in_vain() -> None:
    race = Race(("abcx", "x"), (Rule.OLDER, Rule.OFF))
    assert worst(race._replace(lack=Lack.WATCH), vain) > 1


def test_without_taking_the_cancelled_for_gone_a_write_gives_way_to_one_that_has_ended() -> None:
    race = Race(("a", "ab", "b"), (Rule.OLDER,) * 3)
    assert wrong_in(race) is None
    assert wrong_in(race._replace(lack=Lack.CANCELLED)) is not None


def test_without_asking_whether_a_rival_is_alive_a_write_gives_way_to_a_dead_one() -> None:
    race = Race(("a", "a"), (Rule.OLDER,) * 2, has_crashes=True)
    assert wrong_in(race) is None
    assert wrong_in(race._replace(lack=Lack.PULSE)) is not None


def wrong_in(race: Race) -> str | None:
    return explore_all(start_of(race), partial(steps_from, race=race), broken).wrong
