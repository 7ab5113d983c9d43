"""`show_retention` gives what the table says of its retention."""

from dataclasses import asdict

from lakewarden import Table
from tests.engine.services.service_table import updated
from tests.procedures.calls import call_one
from tests.writing.shapes import carry_out


def test_before_any_clean_everything_can_be_asked_for(path: str) -> None:
    first, *_ = Table(path).timeline().completed()
    assert call_one("show_retention", path) == {
        "earliest_as_of": None,
        "as_of_set_by": None,
        "earliest_changes": None,
        "changes_set_by": None,
        "earliest_end": None,
        "earliest_restore": first.requested,
        "restore_set_by": None,
        "savepoints": "",
    }


def test_a_clean_sets_what_can_be_asked_for_and_savepoints_are_named(path: str) -> None:
    table = Table(path)
    first = table.timeline().completed()[0].requested
    table.savepoint(first)
    for ts in (5, 6, 7):
        carry_out(table, updated(ts=ts))
        table.compaction.schedule_and_run()
    clean = table.clean(commits_retained=1).instant
    shown, reported = call_one("show_retention", path), asdict(table.retention())
    assert shown == {**reported, "savepoints": first}
    assert {shown["as_of_set_by"], shown["changes_set_by"], shown["restore_set_by"]} == {clean}
    assert first < shown["earliest_changes"] < shown["earliest_as_of"] <= shown["earliest_restore"]
