"""Indexes built beside writers: whoever acts in between, an index that is ready is true."""

from collections.abc import Callable

import pytest

from tests.model.indexing_model import ALL_RULES, Build, Rule, State, explored, steps_from

# Without them an index is later or larger, but not untrue: catching up mends both.
BESIDE_TRUTH = frozenset({Rule.GROUPS_UNDER_LOCK, Rule.WRITERS_LOG})


def test_no_interleaving_makes_an_index_ready_that_is_untrue(
    record_property: Callable[[str, object], None],
) -> None:
    found = explored(ALL_RULES)
    assert found.wrong is None, found.trace
    record_property("states", found.states)


@pytest.mark.parametrize("rule", sorted(ALL_RULES - BESIDE_TRUTH))
def test_an_index_is_untrue_without(rule: Rule) -> None:
    assert explored(ALL_RULES - {rule}).wrong is not None


@pytest.mark.parametrize("rule", sorted(BESIDE_TRUTH))
def test_catching_up_mends_what_happens_without(rule: Rule) -> None:
    assert explored(ALL_RULES - {rule}).wrong is None


def test_an_index_becomes_ready_after_a_crash() -> None:
    state = State()
    for name in ("schedule (0)", "die (0)", "resume (1)", "read (1)", "publish the base (1)"):
        state = dict(steps_from(state, ALL_RULES))[name]
    assert dict(steps_from(state, ALL_RULES))["complete (1)"].build is Build.READY
