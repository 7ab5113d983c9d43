"""Indexes: the calls that build, renew, choose, show and remove them.

Built indexes as rows.

`build_index`: build an index, at once or in steps.

`create_index`: build an index on the rows that a table has.

`drop_index`: remove an index, built by any engine.

`refresh_index`: build an index anew.

`set_index`: say by which index all writes of a table find keys.

`show_indexes`: the indexes of a table, and how far each is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.indexing.index_views import IndexBuilt
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import one_word

IndexName = Annotated[str, "The name of the index."]
IndexTypeName = Annotated[
    str | None,
    "record_index, column_stats, partition_stats, secondary_index or bloom_filters; without one the"
    " columns decide: those of the record key mean a record index.",
]
IndexColumns = Annotated[tuple[str, ...] | None, "Its columns."]
IndexOptions = Annotated[
    Mapping[str, str] | None,
    "isPartitioned=true for a record index of each partition, and settings of Hudi.",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltRow:
    """An index after a call."""

    index_name: str
    partition_name: Annotated[str, "The partition of the metadata table that it is."]
    instant: Annotated[str | None, "The build; None where the table was at rest."]
    state: Annotated[str, "READY, or PLANNED after a schedule."]
    indexed_up_to: Annotated[str | None, "The write that its base files go up to."]
    caught_up_to: Annotated[str | None, "The newest write that it covers."]
    records_count: Annotated[int | None, "Keys that were indexed, for a record index."]
    file_groups_count: int
    message: str


def built_row(done: IndexBuilt) -> BuiltRow:
    return BuiltRow(
        index_name=done.name,
        partition_name=done.partition,
        instant=done.instant,
        state=str(done.state),
        indexed_up_to=done.indexed_up_to,
        caught_up_to=done.caught_up_to or done.indexed_up_to,
        records_count=done.records_count,
        file_groups_count=done.file_groups_count,
        message=done.message,
    )


_AT_ONCE = "scheduleAndExecute"
_OPERATIONS = ("schedule", "execute", _AT_ONCE, "resume")


@procedure("build_index", is_mutating=True)
class BuildIndex(Call):
    """Build an index beside writers, at once or in steps; one that is there is left as it is.

    From the schedule on, writes report to the index; queries use it once it is executed. A build
    whose process died is resumed by execute or resume: base files that are finished are kept.
    """

    index_name: IndexName
    table: TableName = None
    index_type: IndexTypeName = None
    columns: IndexColumns = None
    options: IndexOptions = None
    op: Annotated[str, "schedule, execute, scheduleAndExecute or resume."] = _AT_ONCE
    dry_run: DryRun = False
    path: TablePath = None

    Row = BuiltRow

    def run(self, caller: Caller) -> Iterable[BuiltRow]:
        done = open_table(caller, self.table, self.path).build_index(
            self.index_name,
            self.columns or (),
            self.index_type,
            self.options,
            op=one_word("op", self.op, _OPERATIONS),
            dry_run=self.dry_run,
        )
        yield built_row(done)


@procedure("create_index", is_mutating=True)
class CreateIndex(Call):
    """Build an index on the rows that there are; from then on writes keep it true.

    No write may run meanwhile. The build holds the table's lock and makes one metadata commit.
    """

    index_name: IndexName
    table: TableName = None
    columns: IndexColumns = None
    index_type: IndexTypeName = None
    if_not_exists: Annotated[bool, "Do nothing if the index exists."] = False
    options: IndexOptions = None
    column_options: Annotated[
        Mapping[str, str] | None, "Text after the columns: options of an expression."
    ] = None
    dry_run: DryRun = False
    path: TablePath = None

    Row = BuiltRow

    def run(self, caller: Caller) -> Iterable[BuiltRow]:
        done = open_table(caller, self.table, self.path).create_index(
            self.index_name,
            self.columns or (),
            self.index_type,
            self.options,
            column_options=self.column_options,
            if_not_exists=self.if_not_exists,
            dry_run=self.dry_run,
        )
        yield built_row(done)


@procedure("drop_index", is_mutating=True)
class DropIndex(Call):
    """Remove an index, built by whomever, or end the building of one."""

    index_name: IndexName
    table: TableName = None
    if_exists: Annotated[bool, "Do nothing if there is no such index."] = False
    dry_run: DryRun = False
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        index_name: str
        partition_name: Annotated[
            str | None, "Its partition of the metadata table; none without an index."
        ]
        freed_bytes: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        done = open_table(caller, self.table, self.path).drop_index(
            self.index_name, if_exists=self.if_exists, dry_run=self.dry_run
        )
        yield self.Row(
            index_name=done.name,
            partition_name=done.partition,
            freed_bytes=done.freed_bytes,
            message=done.message,
        )


@procedure("refresh_index", is_mutating=True)
class RefreshIndex(Call):
    """Build an index anew as it was defined; readers use the old one until the new one is ready.

    One that is not ready, or has lost file groups, is dropped first.
    """

    index_name: IndexName
    table: TableName = None
    dry_run: DryRun = False
    path: TablePath = None

    Row = BuiltRow

    def run(self, caller: Caller) -> Iterable[BuiltRow]:
        table = open_table(caller, self.table, self.path)
        yield built_row(table.refresh_index(self.index_name, dry_run=self.dry_run))


@procedure("set_index", is_mutating=True)
class SetIndex(Call):
    """Set by which index all writes find keys, as far as the rows that there are allow it.

    An index that takes the same rows for one row can always be set, and any in a table without
    rows; for keys that stand for one row in the whole table the rows are looked at first.
    """

    index_type: Annotated[str, "A value of hoodie.index.type, such as BLOOM or GLOBAL_SIMPLE."]
    table: TableName = None
    options: Annotated[
        Mapping[str, str] | None, "Settings of Hudi; those of a bucket index say how it divides."
    ] = None
    dry_run: DryRun = False
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        index_type: str
        buckets_count: Annotated[int | None, "Buckets in each partition, of a bucket index."]
        is_changed: bool
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        done = open_table(caller, self.table, self.path).set_index(
            self.index_type, self.options, dry_run=self.dry_run
        )
        yield self.Row(
            index_type=done.index,
            buckets_count=done.buckets_count,
            is_changed=done.is_changed,
            message=done.message,
        )


@procedure("show_indexes")
class ShowIndexes(Call):
    """Show the indexes of a table, those included that are not built yet or never will be.

    PLANNED: writers report to it. BUILDING: its base files are made. CATCHING_UP: what has not
    reported to it is added. READY: reads use it. ABANDONED: no process works on it. STALE: it is
    listed as ready and does not know of all writes, so that reads by key leave it out.
    """

    table: TableName = None
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        index_name: Annotated[str, "As DROP INDEX takes it."]
        partition_name: Annotated[str, "The partition of the metadata table that it is."]
        index_type: str
        columns: Annotated[str, "Separated by commas."]
        state: Annotated[str, "PLANNED, BUILDING, CATCHING_UP, READY, ABANDONED or STALE"]
        instant: Annotated[str | None, "The instant at which it was or will be built, if known."]
        file_groups_count: int
        bytes: int
        owner: Annotated[str | None, "The worker that builds it, or has left it."]
        indexed_up_to: Annotated[str | None, "The write that its base files go up to."]
        caught_up_to: Annotated[str | None, "The newest write up to which it knows of all."]
        lag_count: Annotated[int | None, "Later instants that it does not know of, if known."]
        entries_count: Annotated[int, "At most: what logs have changed counts again."]
        step: Annotated[str | None, "What the worker is doing."]
        done_ratio: Annotated[float | None, "How many of its base files are there, from 0 to 1."]
        waits_for: Annotated[str | None, "The instant that holds up its catch-up."]
        reason: Annotated[str | None, "Why it is ABANDONED or STALE, or not used."]

    def run(self, caller: Caller) -> Iterable[Row]:
        for view in open_table(caller, self.table, self.path).index_states():
            yield self.Row(
                index_name=view.name,
                partition_name=view.partition,
                index_type=view.index_type,
                columns=",".join(view.columns),
                state=str(view.state),
                instant=view.instant,
                indexed_up_to=view.indexed_up_to,
                caught_up_to=view.caught_up_to,
                lag_count=view.lag_count,
                entries_count=view.entries_count,
                file_groups_count=view.file_groups_count,
                bytes=view.bytes,
                owner=view.owner,
                step=view.step,
                done_ratio=view.done_ratio,
                waits_for=view.waits_for,
                reason=view.reason,
            )
