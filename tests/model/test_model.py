"""The model: every interleaving of those who act upon one instant, without a lock."""

import os
from collections.abc import Callable

import pytest

from tests.model.exploration import explore
from tests.model.instant_model import Guard, Rules, Variant, start_of

# Executors, cancellers, aborters, lazy cleaners.
SIZES = [(1, 2, 2, 0), (2, 1, 1, 0), (2, 1, 1, 1)]
if "LAKEWARDEN_SEEDS" in os.environ:
    SIZES += [(2, 2, 1, 1), (3, 2, 1, 0)]


@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_no_interleaving_breaks_a_promise(
    size: tuple[int, int, int, int], record_property: Callable[[str, object], None]
) -> None:
    explored = explore(start_of(*size), Rules(claims_max=size[0] + 1))
    assert explored.wrong is None, explored.trace
    record_property("states", explored.states)


def test_an_end_in_a_file_of_its_own_loses_what_was_committed() -> None:
    explored = explore(start_of(2, 1, 1), Rules(Variant.DECISION))
    assert explored.wrong == "committed without its output"
    # Two look, one commits, and the other one claims what has ended and removes its files.
    assert explored.trace[-3:] == (
        "commit.append",
        "start.claim",
        "start.earlier-files",
    )


@pytest.mark.parametrize("guard", Guard, ids=lambda guard: guard.name)
def test_a_promise_is_broken_without(guard: Guard) -> None:
    assert explore(start_of(2, 1, 1), Rules(lacks=guard)).wrong is not None


def test_an_attempt_at_a_time_needs_no_guard() -> None:
    for guard in Guard:
        assert explore(start_of(1, 0, 0), Rules(lacks=guard, claims_max=1)).wrong is None
