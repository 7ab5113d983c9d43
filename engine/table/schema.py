"""The table's schema: the one the newest write recorded, with Hudi's meta columns in front.

Schema history: what a column, and what is inside it, was called in a file of an earlier time.

A table evolved with schema-on-read gives each column and each field inside one an id that outlives
renames; the versions are kept in `.hoodie/.schema`.
"""

import json
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import arrow_schema
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.kernel.errors import CorruptTable, corrupt
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import PROPERTIES_PATH, TableConfig
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES
from lakewarden.engine.timeline.timeline import ActiveTimeline, Archive, Timeline

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


def later_schema(active: ActiveTimeline, instant: str) -> str | None:
    """A completed write that began after another one: its schema is the table's, of these two."""
    for one in reversed(active.completed()):
        if one.requested <= instant:
            return None
        if one.action.is_write:
            metadata = commit.summary(active.read(one), active.path(one))
            is_service = metadata.operation_type in _SERVICES
            if not is_service and metadata.extra_metadata.get(SCHEMA_KEY):
                return one.requested
    return None


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


SCHEMA_FOLDER = ".hoodie/.schema"
COMPLETED_SUFFIX = ".schemacommit"


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The column names by id, from an instant on."""

    instant: str
    names: Mapping[int, str]
    # The whole of it, as Java keeps it.
    text: str = ""
    # Each column's type in it by id, with the ids of what is inside.
    types: Mapping[int, object] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Inside:
    """What fields inside a column of a file are called now; those that are gone are None."""

    names: Mapping[str, str | None] = field(default_factory=dict)
    # By what they were called; of lists `element`, of maps `value`.
    deeper: Mapping[str, "Inside"] = field(default_factory=dict)

    def renamed(self, type_: pa.DataType) -> pa.DataType:
        """The type of a file's column with the names of now; fields that are gone match none."""
        if pa.types.is_struct(type_):
            return pa.struct([self._field(one) for one in type_])
        if pa.types.is_map(type_):
            return pa.map_(type_.key_type, self._deeper(type_.item_field, "value"))
        if pa.types.is_list(type_):
            return pa.list_(self._deeper(type_.value_field, "element"))
        return type_

    def _field(self, one: pa.Field) -> pa.Field:
        name = self.names.get(one.name, one.name)
        # No column of a table has a name with a blank.
        return self._deeper(one, one.name).with_name(f" {one.name}" if name is None else name)

    def _deeper(self, one: pa.Field, name: str) -> pa.Field:
        inner = self.deeper.get(name)
        return one if inner is None else one.with_type(inner.renamed(one.type))


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a file of some instant has the columns as read now."""

    # Its name of columns that it calls else; None: not there yet.
    names: Mapping[str, str | None] = field(default_factory=dict)
    # What is inside columns that have changed there, or in their type.
    inside: Mapping[str, Inside] = field(default_factory=dict)

    def of(self, name: str) -> str | None:
        return self.names.get(name, name)

    def __contains__(self, name: str) -> bool:
        return name in self.names or name in self.inside

    def __bool__(self) -> bool:
        return bool(self.names or self.inside)


AS_STORED = Sources()


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """All versions, oldest first; empty when the table never evolved that way."""

    versions: tuple[SchemaVersion, ...] = ()
    # The file it stands in.
    path: str = ""

    def sources(self, written_at: str, read_at: str | None = None) -> Sources:
        """Where a file of an instant has the columns that it does not have as they are now."""
        if not self.versions:
            return AS_STORED
        then, now = self._at(written_at), self._at(read_at)
        if then is now:
            return AS_STORED
        # What a write adds under the name of a dropped column is in no file of that one's time.
        names: dict[str, str | None] = dict.fromkeys(then.names.values())
        names |= {now.names[id_]: then.names.get(id_) for id_ in now.names}
        inside = {
            name: _inside(then.types.get(id_), now.types.get(id_)) or Inside()
            for id_, name in now.names.items()
            if id_ in then.types and then.types[id_] != now.types.get(id_)
        }
        return Sources({name: one for name, one in names.items() if name != one}, inside)

    def is_steady(self, name: str) -> bool:
        """Whether what any file tells of a column of this name is about the one of now."""
        known = [
            (id_, version.types.get(id_))
            for version in self.versions
            for id_, own in version.names.items()
            if own == name
        ]
        return all(one == known[0] for one in known)

    def until(self, instant: str | None) -> "SchemaHistory":
        """The versions that there were at an instant; files of later ones are read by no one."""
        if instant is None:
            return self
        position = bisect_right([version.instant for version in self.versions], instant)
        return replace(self, versions=self.versions[: max(position, 1)])

    def _at(self, instant: str | None) -> SchemaVersion:
        if instant is None:
            return self.versions[-1]
        position = bisect_right([version.instant for version in self.versions], instant)
        return self.versions[max(position - 1, 0)]


def load_schema_history(storage: Storage, timeline: Timeline) -> SchemaHistory:
    """The history that the newest completed write has left, or an empty one.

    A writer leaves it before it commits, and what was rolled back or restored leaves it behind.
    """
    files = {
        entry.name.partition(".")[0].partition("_")[0]: entry.path
        for entry in sorted(storage.list(SCHEMA_FOLDER).files, key=lambda entry: entry.name)
        if entry.name.endswith(COMPLETED_SUFFIX) and entry.size_bytes > 0
    }
    path = next((files[one] for one in sorted(files, reverse=True) if _counts(timeline, one)), None)
    return SchemaHistory() if path is None else parse_schema_history(storage.read(path), path)


def _counts(timeline: Timeline, instant: str) -> bool:
    """Whether the write of an instant has completed; the archive is asked about old ones only."""
    if any(one.is_completed and one.action.is_write for one in timeline.active.with_time(instant)):
        return True
    is_old = timeline.is_completed(instant)
    return is_old and timeline.archive.completion_time(instant) is not None


def parse_schema_history(payload: bytes, path: str) -> SchemaHistory:
    """The versions a schema commit holds."""
    try:
        document = json.loads(payload)
        versions = [
            SchemaVersion(
                # Version 0 is the schema before the first change.
                str(schema["version_id"]) if schema["version_id"] else "",
                {int(field["id"]): str(field["name"]) for field in schema["fields"]},
                json.dumps(schema, separators=(",", ":"), ensure_ascii=False),
                {int(field["id"]): field.get("type") for field in schema["fields"]},
            )
            for schema in document["schemas"]
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unreadable(path, error) from None
    return SchemaHistory(tuple(sorted(versions, key=lambda version: version.instant)), path)


def _unreadable(path: str, error: Exception) -> CorruptTable:
    return corrupt(path, None, f"It is not a schema history: {type(error).__name__} {error}.")


def _inside(then: object, now: object) -> Inside | None:
    """What has become of the fields inside a type; nothing where they are as they were."""
    if not isinstance(then, Mapping) or not isinstance(now, Mapping):
        return None
    if "fields" in then and "fields" in now:
        return _inside_struct(then["fields"], now["fields"])
    # A type is a list or a map.
    found = {name: _inside(then.get(name), now.get(name)) for name in ("element", "value")}
    deeper = {name: one for name, one in found.items() if one is not None}
    return Inside(deeper=deeper) if deeper else None


def _inside_struct(then: Sequence[Mapping[str, object]], now: object) -> Inside | None:
    assert isinstance(now, Sequence)
    kept = {one["id"]: one for one in now}
    names = {str(one["name"]): kept.get(one["id"], {}).get("name") for one in then}
    pairs = ((one, kept[one["id"]]) for one in then if one["id"] in kept)
    found = {str(one["name"]): _inside(one["type"], other["type"]) for one, other in pairs}
    changed = {name: one for name, one in names.items() if name != one}
    deeper = {name: one for name, one in found.items() if one is not None}
    return Inside(changed, deeper) if changed or deeper else None
