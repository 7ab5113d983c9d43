"""Plans of Java: we make the same, and carry out those that Java has left."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata.compaction import CompactionPlan
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import Draft, PlanRequest
from lakewarden.engine.services.planning.schedule import draft
from lakewarden.engine.transaction.state.context import Context
from tests.canonical import canonical_rows, difference
from tests.golden_tables import GoldenDocument, GoldenTable
from tests.interop.contexts import local_context

REQUESTED = "mor_log_compaction_requested"


def context(table: Path) -> Context:
    return local_context(table, {"hoodie.log.compaction.blocks.threshold": 2})


def plan_file(table: Path) -> Path:
    (found,) = (table / ".hoodie" / "timeline").glob("*.logcompaction.requested")
    return found


def java_plan(table: Path) -> CompactionPlan:
    path = plan_file(table)
    return compaction.decode_plan(path.read_bytes(), str(path))


@pytest.fixture
def table(golden_copy: GoldenTable) -> Path:
    return golden_copy(REQUESTED)


def test_we_carry_out_what_java_has_planned(table: Path, golden_document: GoldenDocument) -> None:
    instant = plan_file(table).name.partition(".")[0]
    done = execute(context(table), LOG_COMPACTION, instant)
    operations = java_plan(table).operations
    assert done.file_groups == done.files == len(operations) == 3
    expected = golden_document(REQUESTED)["expected"]["snapshot"]["rows"]
    for use_metadata in (True, False):
        found = Table(str(table)).read_arrow(use_metadata=use_metadata)
        assert difference(expected, canonical_rows(found)) == ""


def test_our_plan_is_the_one_that_java_has_made(table: Path) -> None:
    theirs, path = java_plan(table), plan_file(table)
    path.unlink()
    drafted = draft(context(table), LOG_COMPACTION, PlanRequest(cancellable=False))
    assert isinstance(drafted, Draft)
    ours = compaction.decode_plan(drafted.content, "ours")
    assert replace(ours, operations=(), extra_metadata={}) == replace(theirs, operations=())
    mine = {one.file_id: one for one in ours.operations}
    for one in theirs.operations:
        # Java has written to some file groups since.
        later = len(mine[one.file_id].delta_file_paths) - len(one.delta_file_paths)
        assert later in (0, 1)
        if not later:
            assert mine[one.file_id] == one
