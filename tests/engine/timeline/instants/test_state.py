"""The state of an instant: every row of the protocol's table, and totality over everything."""

from itertools import product

import pytest

from lakewarden.engine.timeline.instants.state import (
    HeartbeatSign,
    InstantFacts,
    InstantState,
    LedgerEnd,
    PlanFile,
    RollbackOf,
    state_of,
)

ANY_HEARTBEAT = tuple(HeartbeatSign)
ANY_LEDGER = tuple(LedgerEnd)
ANY_PLAN = tuple(PlanFile)
ANY_ROLLBACK = tuple(RollbackOf)
BOTH = (False, True)
PENDING, NO_ROLLBACK = (RollbackOf.PENDING,), (RollbackOf.NONE,)
CLAIM_OR_NONE = (LedgerEnd.CLAIM, LedgerEnd.NONE)
CANCELLED = (LedgerEnd.CANCELLED,)
LIVE, DEAD_OR_NONE = (HeartbeatSign.LIVE,), (HeartbeatSign.DEAD, HeartbeatSign.NONE)
WHOLE, NOT_PUBLISHED = (PlanFile.WHOLE,), (PlanFile.ABSENT, PlanFile.TORN)
NO, YES = (False,), (True,)

# completed, rollback of it, ledger ends in, inflight, requested, newest heartbeat -> state.
ROWS = {
    "completed": (
        (YES, ANY_ROLLBACK, ANY_LEDGER, BOTH, ANY_PLAN, ANY_HEARTBEAT),
        InstantState.COMPLETED,
    ),
    "rolled back": (
        (NO, (RollbackOf.COMPLETED,), ANY_LEDGER, BOTH, ANY_PLAN, ANY_HEARTBEAT),
        InstantState.ROLLED_BACK,
    ),
    "committed": (
        (NO, NO_ROLLBACK, (LedgerEnd.COMMITTED,), BOTH, ANY_PLAN, ANY_HEARTBEAT),
        InstantState.COMMITTED,
    ),
    "committed and being rolled back by somebody without a ledger": (
        (NO, PENDING, (LedgerEnd.COMMITTED,), BOTH, ANY_PLAN, ANY_HEARTBEAT),
        InstantState.ROLLING_BACK_ELSEWHERE,
    ),
    "cancelled and being rolled back": (
        (NO, PENDING, CANCELLED, BOTH, ANY_PLAN, ANY_HEARTBEAT),
        InstantState.CANCELLED_ROLLING_BACK,
    ),
    "cancelled with a live attempt": (
        (NO, NO_ROLLBACK, CANCELLED, BOTH, ANY_PLAN, LIVE),
        InstantState.CANCELLED_ALIVE,
    ),
    "cancelled with a dead attempt": (
        (NO, NO_ROLLBACK, CANCELLED, BOTH, ANY_PLAN, DEAD_OR_NONE),
        InstantState.CANCELLED_ROLLBACK_DUE,
    ),
    "rolled back by somebody without a ledger": (
        (NO, PENDING, CLAIM_OR_NONE, BOTH, ANY_PLAN, ANY_HEARTBEAT),
        InstantState.ROLLING_BACK_ELSEWHERE,
    ),
    "inflight with a live attempt": (
        (NO, NO_ROLLBACK, CLAIM_OR_NONE, YES, ANY_PLAN, LIVE),
        InstantState.INFLIGHT_HELD,
    ),
    "inflight with a dead attempt": (
        (NO, NO_ROLLBACK, CLAIM_OR_NONE, YES, ANY_PLAN, DEAD_OR_NONE),
        InstantState.INFLIGHT_ABANDONED,
    ),
    "requested with a live attempt": (
        (NO, NO_ROLLBACK, CLAIM_OR_NONE, NO, WHOLE, LIVE),
        InstantState.REQUESTED_HELD,
    ),
    "requested": (
        (NO, NO_ROLLBACK, CLAIM_OR_NONE, NO, WHOLE, DEAD_OR_NONE),
        InstantState.REQUESTED,
    ),
    "never published": (
        (NO, NO_ROLLBACK, CLAIM_OR_NONE, NO, NOT_PUBLISHED, ANY_HEARTBEAT),
        InstantState.UNKNOWN,
    ),
}


def combinations(columns: tuple[tuple[object, ...], ...]) -> list[InstantFacts]:
    names = ("completed", "rollback", "ledger", "inflight", "plan", "heartbeat")
    return [InstantFacts(**dict(zip(names, values, strict=True))) for values in product(*columns)]


EVERYTHING = combinations((BOTH, ANY_ROLLBACK, ANY_LEDGER, BOTH, ANY_PLAN, ANY_HEARTBEAT))


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_table_holds_for_all_it_covers(row: str) -> None:
    columns, state = ROWS[row]
    assert {state_of(instant_facts) for instant_facts in combinations(columns)} == {state}


def test_the_rows_cover_every_combination_exactly_once() -> None:
    covered = [
        instant_facts for columns, _ in ROWS.values() for instant_facts in combinations(columns)
    ]
    assert len(covered) == len(EVERYTHING) == len(set(covered))


def test_every_combination_has_a_state_and_every_state_a_combination() -> None:
    assert {state_of(instant_facts) for instant_facts in EVERYTHING} == set(InstantState)


def test_a_torn_plan_counts_as_not_published() -> None:
    for torn in (
        instant_facts for instant_facts in EVERYTHING if instant_facts.plan is PlanFile.TORN
    ):
        absent = InstantFacts(
            completed=torn.completed,
            rollback=torn.rollback,
            ledger=torn.ledger,
            inflight=torn.inflight,
            plan=PlanFile.ABSENT,
            heartbeat=torn.heartbeat,
        )
        assert state_of(torn) is state_of(absent)


def test_only_a_cancelled_ledger_outweighs_a_pending_rollback() -> None:
    pending = (e for e in EVERYTHING if e.rollback is RollbackOf.PENDING and not e.completed)
    for instant_facts in pending:
        elsewhere = state_of(instant_facts) is InstantState.ROLLING_BACK_ELSEWHERE
        assert elsewhere == (instant_facts.ledger is not LedgerEnd.CANCELLED)
