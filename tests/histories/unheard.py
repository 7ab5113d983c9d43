"""Writes by writers that do not know the metadata table: read at once, and built on by nothing.

What nobody can do before the table is whole again belongs to the same step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from lakewarden import InvalidRequest, LakewardenError, Table
from lakewarden.engine.timeline.instants.instant import Instant
from tests.histories.operation import Call
from tests.histories.rows import given, upserted
from tests.histories.seen import Difference, assert_same, plain, rows_of
from tests.histories.services import ARCHIVING
from tests.histories.table_model import Past
from tests.histories.writes import briefly

REFUSAL = "write_without_metadata"
# What others try meanwhile; whatever is not refused has found nothing to do.
TRIED: Mapping[str, Callable[[Table], object]] = {
    "archive": lambda table: table.archive(options=ARCHIVING),
    "compaction": lambda table: table.compaction.schedule_and_run(),
    "metadata services": lambda table: table.maintain_metadata(),
    "overwrite": lambda table: table.truncate(),
    "delete": lambda table: table.delete_where("v >= 0"),
    "clean": lambda table: table.clean(options={"hoodie.clean.commits.retained": "1"}),
}
REPAIRS = ("rollback", "metadata anew", "no metadata")


@dataclass(frozen=True, slots=True)
class UnheardWrite:
    """An upsert of which the metadata table lacks every trace, and what puts that in order."""

    name: str = "unheard write"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not past.has_metadata:
            return None
        rows = upserted(past, chance, step)
        tried = chance.sample(sorted(TRIED), 2)
        if not past.kind.is_mor:
            tried = [one for one in tried if one != "compaction"]
        repair = chance.choice(REPAIRS)
        written = past.copy()
        for row in rows:
            written.put(row, step)

        ended: list[bool] = []

        def learns(past: Past, answer: object) -> None:
            past.has_metadata = ended[-1]

        def effect(past: Past) -> None:
            for row in rows if repair != "rollback" else ():
                past.put(row, step)

        def act(table: Table) -> object:
            commit = table.upsert(given(past, rows))
            assert commit.instant is not None
            _unhear(table, commit.instant)
            for name in tried:
                _assert_in_vain(table, name)
                _assert_read(table, written)
            ended.append(_put_in_order(table, commit.instant, repair))
            return commit

        return Call(
            text=f"unheard {briefly(rows)}, then {', '.join((*tried, repair))}",
            act=act,
            effect=effect,
            learns=learns,
            is_write=repair != "rollback",
            is_whole=True,
        )


def _unhear(table: Table, write: str) -> None:
    """Nothing of a write has come to the metadata table."""
    storage = table.state().storage
    for entry in list(storage.walk(".hoodie/metadata")):
        if write in entry.name:
            storage.delete(entry.path)


def _assert_in_vain(table: Table, name: str) -> None:
    """Nothing completes besides."""
    before = _completed(table)
    try:
        TRIED[name](table)
    except LakewardenError as refused:
        if refused.code != REFUSAL:
            raise
    if _completed(table) != before:
        raise Difference("unheard", f"{name} was built on a write that nobody has heard of.")


def _completed(table: Table) -> tuple[Instant, ...]:
    return tuple(table.timeline().completed())


def _assert_read(table: Table, past: Past) -> None:
    expected = plain(past.rows, past.columns)
    for use_metadata in (True, False):
        read = table.read_arrow(past.kind.shown(past.columns), use_metadata=use_metadata)
        assert_same(rows_of(read, past.kind, "unheard"), expected, "unheard", f"{use_metadata=}")


def _put_in_order(table: Table, write: str, repair: str) -> bool:
    """Whether the table has a metadata table then; one that has renamed columns gets none."""
    if repair == "rollback":
        table.rollback(write)
        return True
    table.delete_metadata_table()
    try:
        return repair == "metadata anew" and bool(table.create_metadata_table())
    except InvalidRequest as refused:
        if refused.code != "renamed_columns":
            raise
        return False
