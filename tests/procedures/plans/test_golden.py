"""The state of tables that Java has written, of every version that can be read."""

import pytest

from lakewarden import InvalidRequest
from tests.golden_tables import GoldenTable
from tests.procedures.calls import call, contents_of

TABLES = (
    "v6_cow_archived",
    "v6_mor",
    "v8_mor_by_102",
    "cow_clean_requested",
    "mor_compaction_inflight",
    "mor_failed_write_lazy_heartbeat",
    "mor_savepoint",
)
SHOWS = (
    "show_plans",
    "show_ledger",
    "show_heartbeats",
    "show_locks",
    "show_markers",
    "show_blockers",
    "show_inflight_commits",
    "show_savepoints",
    "table_health",
)
TRIES = ("run_clean", "run_compaction", "run_clustering", "archive_commits", "sweep")


@pytest.mark.parametrize("name", TABLES)
def test_whatever_can_be_read_can_be_shown(golden: GoldenTable, name: str) -> None:
    path = golden(name)
    found = {show: call(show, path=str(path)) for show in SHOWS}
    assert found["table_health"]
    assert bool(found["show_savepoints"]) == (name == "mor_savepoint")
    assert bool(found["show_heartbeats"]) == (name == "mor_failed_write_lazy_heartbeat")
    assert [row["service"] for row in found["show_plans"]] == {
        "cow_clean_requested": ["clean"],
        "mor_compaction_inflight": ["compaction"],
    }.get(name, [])


@pytest.mark.parametrize("name", TABLES)
def test_a_dry_run_answers_or_refuses_by_name_and_changes_nothing(
    golden: GoldenTable, name: str
) -> None:
    path = golden(name)
    before = contents_of(path)
    answers = {one: answer(one, str(path)) for one in TRIES}
    assert set(answers.values()) <= {"", "unsupported_table_version", "unsupported_index"}
    assert contents_of(path) == before


def answer(name: str, path: str) -> str:
    """The code of a refusal; nothing if there were rows."""
    try:
        return "" if call(name, path=path, dry_run=True) else "no rows"
    except InvalidRequest as refusal:
        return refusal.code
