"""The table's schema: the one the newest write recorded, with Hudi's meta columns in front."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import arrow_schema
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.table.config import PROPERTIES_PATH, TableConfig
from lakewarden.engine.timeline.active import ActiveTimeline
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES
from lakewarden.engine.timeline.timeline import Archive

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME = META_COLUMNS
SCHEMA_KEY = "schema"
_SERVICES = frozenset({Operation.COMPACT, Operation.LOG_COMPACT, Operation.CLUSTER})


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of a table without the meta columns, and the Avro text they came from."""

    columns: pa.Schema
    avro_text: str | None

    def with_meta(self) -> pa.Schema:
        meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
        return pa.schema([*meta, *self.columns])


def resolve_schema(
    active: ActiveTimeline,
    config: TableConfig,
    as_of: str | None = None,
    archive: Archive | None = None,
) -> TableSchema:
    """The schema of the newest completed write that recorded one, else that of the creation.

    A service records the one it has found, which a write that began before it may have changed
    meanwhile; so services are asked only when no write is there. The archive is asked only when no
    write on the active timeline has an answer.
    """
    of_service: TableSchema | None = None
    for payload, path in _newest_first(active, archive, as_of):
        metadata = commit.summary(payload, path)
        text = metadata.extra_metadata.get(SCHEMA_KEY)
        if not text or (of_service and metadata.operation_type in _SERVICES):
            continue
        found = _with_dropped_columns(schema_from(text, path), config)
        if metadata.operation_type not in _SERVICES:
            return found
        of_service = found
    if of_service is not None:
        return of_service
    if config.create_schema:
        return schema_from(config.create_schema, PROPERTIES_PATH)
    return TableSchema(pa.schema([]), None)


def _newest_first(
    active: ActiveTimeline, archive: Archive | None, as_of: str | None
) -> Iterator[tuple[bytes, str]]:
    """The contents of the completed writes up to a time, and where they are from."""
    completed = active.completed()
    # An archival leaves some writes active, so that without any there is no archive.
    if archive is not None and not completed:
        archive = None
    known = {instant.key for instant in completed}
    reached = [one for one in completed if as_of is None or one.requested <= as_of]
    if archive is not None and as_of is not None and reached and active.layout.version > 1:
        # Beyond a savepoint, writes are archived that are newer than its own.
        yield from _archived(active, archive, known, reached[-1].requested, as_of)
    for instant in reversed(reached):
        yield active.read(instant), active.path(instant)
    if archive is not None:
        yield from _archived(active, archive, known, None, as_of)


def _archived(
    active: ActiveTimeline,
    archive: Archive,
    known: Collection[tuple[str, str]],
    since: str | None,
    until: str | None,
) -> Iterator[tuple[bytes, str]]:
    for row in archive.rows(COMPLETED_WRITES, since, until):
        if row.instant.key not in known and row.metadata is not None:
            yield row.metadata, f"{active.layout.history_folder} ({row.instant})"


def _with_dropped_columns(schema: TableSchema, config: TableConfig) -> TableSchema:
    """Partition columns that only the paths tell are columns of the table all the same."""
    if not config.drops_partition_columns:
        return schema
    names = [field.name for field in config.partitions.fields]
    dropped = [pa.field(name, pa.string()) for name in names if name not in schema.columns.names]
    return TableSchema(pa.schema([*schema.columns, *dropped]), schema.avro_text)


def schema_from(text: str, path: str) -> TableSchema:
    """A schema in Avro, as columns; meta columns in it are skipped."""
    fields = arrow_schema(parse_schema(text, path))
    own = [field.with_nullable(True) for field in fields if field.name not in META_COLUMNS]
    return TableSchema(pa.schema(own), text)
