"""Indexers, simulated: whoever acts in between, reads by an index find what reads without one do.

Each rule of builds, taken away, is found out. A run that fails prints the line that replays it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from lakewarden.engine.metadata.reading.table import MetadataTable
from lakewarden.engine.metadata.writing.deltacommit import reported_to
from lakewarden.engine.services.indexing.catch_up import CatchUp, Reading
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import InstantFiles
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.attempts.attempt import Attempt
from tests.engine.services.indexing import test_race_rows, test_rfc_cases
from tests.histories.guards import Guard
from tests.sampling import IS_SIMULATION
from tests.simulation.campaign import SEEDS, Campaign, campaigns
from tests.simulation.indexers import IndexerKind, IndexerRun
from tests.simulation.locks import LockKind
from tests.simulation.scheduler import Chances, Violation

SHARE = 200
CAMPAIGNS = [
    campaign
    for kind in map(IndexerKind, LockKind)
    for campaign in campaigns(kind.name, partial(IndexerRun, kind), SEEDS // SHARE // 3 + 1)
]


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=str)
def test_reads_by_an_index_find_what_reads_without_it_do(
    campaign: Campaign, record_property: Callable[[str, object], None]
) -> None:
    campaign.run(record_property)


_ENGINE = "lakewarden.engine"
_BUILD = f"{_ENGINE}.services.indexing"
# Everybody comes, and stands still often.
_ALL = tuple((name, 1.0) for name in ("indexer 2", "writer 2", "unknowing writer"))
RESTLESS = Chances(kill=0, pause=0.03, fault=0, pauses_max=20)
CROWDED = IndexerKind(chances=RESTLESS, shares=_ALL)
UNDONE = IndexerKind(chances=RESTLESS, shares=(*_ALL, ("undoer", 1.0)))
DEAF = IndexerKind(chances=RESTLESS, shares=(("deaf writer", 1.0), ("undoer", 0.0)))


@dataclass(frozen=True, slots=True)
class Removed:
    """A rule of builds, by its place in the engine, and the runs that need it."""

    guard: Guard
    kind: IndexerKind

    def __str__(self) -> str:
        return self.guard.name

    def first_red(self, seeds: int) -> int | None:
        """The first seed with which a read by an index is wrong."""
        with self.guard.removed():
            for seed in range(seeds):
                try:
                    IndexerRun(self.kind, seed).play()
                except (Violation, AssertionError):
                    return seed
        return None


def _as_gathered(change: object, known: object, now: object) -> object:
    return change


def _without_holes(snapshot: Snapshot) -> tuple[str, tuple[str, ...]]:
    completed = (one.requested for one in snapshot.timeline.active.completed())
    return max(completed, default=""), ()


def _to_all(state: MetadataTable, instant: str, since: str) -> frozenset[str] | None:
    """What Java asks: whether the metadata table has heard of a write, and not what."""
    found = reported_to(state, instant, since)
    return None if found is None else frozenset({"record_index", "secondary_index_by_name"})


def _only_before(
    report: Callable[..., InstantFiles | None],
) -> Callable[..., InstantFiles | None]:
    def reported(
        self: CatchUp, snapshot: Snapshot, at: Reading = Reading.FREELY
    ) -> InstantFiles | None:
        return report(self, snapshot) if at is Reading.FREELY else None

    return reported


def _nothing(*arguments: object, **keywords: object) -> None:
    return None


def _own(attempt: Attempt) -> object:
    return read_ledger(attempt._context.storage, attempt.instant)


ASKS = Guard("R3: catching up asks the partition", (f"{_BUILD}.catch_up:reported_to",), _to_all)
RULES = (
    Removed(
        Guard(
            "R1: a writer looks for indexes when it commits",
            (f"{_ENGINE}.write.at_commit:as_known",),
            _as_gathered,
        ),
        CROWDED,
    ),
    Removed(ASKS, CROWDED),
    Removed(
        Guard(
            "R5: an undoing drops what was built on what it takes back",
            (f"{_ENGINE}.transaction.rollback.execution:untrue_without",),
            lambda context, snapshot, instants: (),
        ),
        UNDONE,
    ),
    Removed(
        Guard(
            "R6: a base is published as of now",
            (f"{_BUILD}.run_build:_Run._assert_there",),
            _nothing,
        ),
        UNDONE,
    ),
    Removed(
        Guard(
            "R7: a build is its last claim's",
            (
                f"{_ENGINE}.transaction.attempts.attempt:Attempt.check_claim",
                f"{_ENGINE}.transaction.attempts.attempt:Attempt.assert_mine",
            ),
            _own,
        ),
        CROWDED,
    ),
    Removed(
        Guard(
            "R8: readers ask whether every write has been heard of",
            (f"{_ENGINE}.metadata.reading.table:MetadataTable.unheard_write",),
            None,
        ),
        DEAF,
    ),
)
SEEDS_MAX = 120
# That which is found within two runs; `make simulate` has all.
QUICK = ("R8",)


@pytest.mark.parametrize(
    "rule", [one for one in RULES if IS_SIMULATION or str(one).startswith(QUICK)], ids=str
)
def test_a_read_by_an_index_is_wrong_without(rule: Removed) -> None:
    assert rule.first_red(SEEDS_MAX) is not None


# What happens in a few calls only is forced: a hole when the plan is made, and a write between the
# last look and the lock.
HOLES = Guard(
    "R2: what was pending with the plan is caught up with",
    (f"{_BUILD}.schedule_build:base_of",),
    _without_holes,
)
LAST_LOOK = Guard(
    "R4: completing looks again under the lock",
    (f"{_BUILD}.catch_up:CatchUp.report",),
    _only_before(CatchUp.report),
)


def test_an_index_is_untrue_where_catching_up_does_not_ask_the_partition() -> None:
    with ASKS.removed(), pytest.raises(AssertionError):
        test_race_rows.test_race_17_a_writer_that_does_not_look_for_builds(None)


def test_an_index_is_untrue_without_what_was_pending_with_its_plan() -> None:
    with HOLES.removed(), pytest.raises(AssertionError):
        test_rfc_cases.test_case_5_a_timeline_with_holes()


def test_an_index_is_untrue_without_a_last_look_under_the_lock() -> None:
    with LAST_LOOK.removed(), pytest.raises(AssertionError):
        test_race_rows.test_race_17_a_writer_that_does_not_look_for_builds(4)
