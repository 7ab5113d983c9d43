"""The table's schema: the one the newest write recorded, with Hudi's meta columns in front."""

from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import arrow_schema
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.payloads import commit
from lakewarden.engine.formats.payloads.commit import Operation
from lakewarden.engine.table.config import PROPERTIES_PATH, TableConfig
from lakewarden.engine.timeline.active import ActiveTimeline

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
    active: ActiveTimeline, config: TableConfig, as_of: str | None = None
) -> TableSchema:
    """The schema of the newest completed write that recorded one, else that of the creation.

    A service records the one it has found, which a write that began before it may have changed
    meanwhile; so services are asked only when no write is left on the active timeline.
    """
    of_service: TableSchema | None = None
    for instant in reversed(active.completed()):
        if as_of is not None and instant.requested > as_of:
            continue
        path = active.path(instant)
        metadata = commit.decode(active.read(instant), path)
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


def _with_dropped_columns(schema: TableSchema, config: TableConfig) -> TableSchema:
    """Partition columns that only the paths tell are columns of the table all the same."""
    if not config.drops_partition_columns:
        return schema
    names = [field.name for field in config.partitions.fields]
    dropped = [pa.field(name, pa.string()) for name in names if name not in schema.columns.names]
    return TableSchema(pa.schema([*schema.columns, *dropped]), schema.avro_text)


def schema_from(text: str, path: str) -> TableSchema:
    """A schema in Avro, as columns; meta columns in it are left out."""
    fields = arrow_schema(parse_schema(text, path))
    own = [field.with_nullable(True) for field in fields if field.name not in META_COLUMNS]
    return TableSchema(pa.schema(own), text)
