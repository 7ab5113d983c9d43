"""Fencing: of committers that know nothing of each other, at most one commits, without any lock."""

import os
from collections.abc import Callable
from functools import partial

import pytest

from tests.model.exploration import Explored, explore_all
from tests.model.fencing_model import Lack, broken, start_of, steps_from

# How many commit, and whether somebody takes back what they build upon.
SIZES = [(2, False), (2, True)]
if "LAKEWARDEN_SEEDS" in os.environ:
    SIZES += [(3, False), (3, True)]


def explored(committers: int, *, takes_back: bool, lack: Lack = Lack.NOTHING) -> Explored:
    return explore_all(
        start_of(committers, takes_back=takes_back),
        partial(steps_from, lack=lack),
        lambda state, _: broken(state),
    )


@pytest.mark.parametrize(("committers", "takes_back"), SIZES)
def test_no_interleaving_has_two_commits(
    committers: int, takes_back: bool, record_property: Callable[[str, object], None]
) -> None:
    found = explored(committers, takes_back=takes_back)
    assert found.wrong is None, found.trace
    record_property("states", found.states)


@pytest.mark.parametrize("lack", [Lack.FENCE, Lack.ORDER, Lack.LAST_LOOK])
def test_a_promise_is_broken_without(lack: Lack) -> None:
    assert explored(2, takes_back=True, lack=lack).wrong is not None
