"""Metadata records: raw key and value runs of a metadata file group, and the newest of each key.

A run holds what one base file or one log block says; later runs win over earlier ones.

The metadata record: its schema as Java writes it down, and columns of values encoded by it.

Data blocks and HFiles name a schema with the five meta columns in front, which stay empty; commits
name the schema without them. The real key is the HFile's; the field `key` is left empty, too.

Entries: what one commit says to a shard, and how that is split over its file groups.

Base files of the metadata table: HFiles that initialisation and compaction make of entries.

Log files of the metadata table: one for each file group that a commit touches.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.formats.avro.decode import decode_records
from lakewarden.engine.formats.avro.encode import encode_records
from lakewarden.engine.formats.avro.schema import parse_schema, written_schema
from lakewarden.engine.formats.bloom import build_bloom
from lakewarden.engine.formats.hashing import file_group_index
from lakewarden.engine.formats.hfile import write_hfile
from lakewarden.engine.formats.log.deletes import Deletes
from lakewarden.engine.formats.log.write import BlockOrigin, delete_block, hfile_block
from lakewarden.engine.formats.octets import large_binary
from lakewarden.engine.formats.widening import nullable, widen
from lakewarden.engine.table.schema import META_COLUMNS

EMPTY_BINARY = pa.array([], type=pa.large_binary())
_NO_VALUE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Run:
    """Keys with their encoded values, or keys that were removed (then there are no values)."""

    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray | None
    schema_text: str
    path: str


@dataclass(frozen=True, slots=True)
class Versions:
    """All that is known of some keys, oldest first, decoded as far as it was asked for."""

    keys: pa.LargeBinaryArray
    is_removed: np.ndarray
    values: pa.Table

    def newest(self) -> "Versions":
        """The last version of every key, without the keys that end up removed."""
        if len(self.keys) == 0:
            return self
        codes = self.keys.dictionary_encode().indices.to_numpy()
        last = np.zeros(int(codes.max()) + 1, dtype=np.int64)
        # With repeated indices the last assignment stays, which is the newest version.
        last[codes] = np.arange(len(codes))
        kept = np.sort(last)
        return self.take(kept[~self.is_removed[kept]])

    def take(self, positions: np.ndarray) -> "Versions":
        indices = pa.array(positions)
        return Versions(
            self.keys.take(indices), self.is_removed[positions], self.values.take(indices)
        )


def decode_runs(runs: Sequence[Run], columns: Sequence[str]) -> Versions:
    """Decode runs, given oldest first, into one table of versions with the given columns."""
    rows = [_NO_VALUE] * len(runs)
    tables: list[pa.Table] = []
    decoded = 0
    for text, members in _by_schema(runs).items():
        # Log blocks are many and small, so all that share a schema are decoded together.
        tables.append(_decode(text, [runs[at] for at in members], columns))
        for at in members:
            rows[at] = np.arange(decoded, decoded + len(runs[at].keys))
            decoded += len(runs[at].keys)
    places = np.concatenate(
        [_NO_VALUE]
        + [
            np.full(len(run.keys), -1) if run.values is None else rows[at]
            for at, run in enumerate(runs)
        ]
    )
    is_removed = places < 0
    return Versions(
        pa.concat_arrays([EMPTY_BINARY, *(run.keys for run in runs)]),
        is_removed,
        _united(tables, columns).take(pa.array(places, mask=is_removed)),
    )


def _by_schema(runs: Sequence[Run]) -> dict[str, list[int]]:
    members: dict[str, list[int]] = {}
    for at, run in enumerate(runs):
        if run.values is not None:
            members.setdefault(run.schema_text, []).append(at)
    return members


def _decode(schema_text: str, runs: Sequence[Run], columns: Sequence[str]) -> pa.Table:
    values = pa.concat_arrays([EMPTY_BINARY, *(run.values for run in runs)])
    _, offsets, content = values.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    path = runs[0].path if len(runs) == 1 else f"{runs[0].path} and {len(runs) - 1} more"
    schema = parse_schema(schema_text, path)
    known = {field.name for field in schema.fields}
    # Releases before 1.1 lack some fields; they are null then.
    wanted = [name for name in columns if name in known]
    table = decode_records(content or b"", bounds[:-1], bounds[1:], schema, path, columns=wanted)
    missing = {name: pa.nulls(len(values)) for name in columns if name not in known}
    return pa.table({name: table.column(name) for name in wanted} | missing)


def _united(tables: Sequence[pa.Table], columns: Sequence[str]) -> pa.Table:
    """Tables of different releases as one; newer releases add fields."""
    if not tables:
        return pa.table({name: pa.nulls(0) for name in columns})
    if len(tables) == 1:
        return tables[0].combine_chunks()
    schemas = [
        pa.schema([pa.field(field.name, nullable(field.type)) for field in table.schema])
        for table in tables
    ]
    model = pa.unify_schemas(schemas, promote_options="permissive")
    parts = [
        [widen(table.column(field.name).combine_chunks(), field.type) for field in model]
        for table in tables
    ]
    return pa.concat_tables([pa.table(part, schema=model) for part in parts]).combine_chunks()


def text_keys(keys: pa.LargeBinaryArray) -> list[str]:
    """Keys as text; metadata keys are always UTF-8."""
    return [str(key) for key in pc.cast(keys, pa.large_string()).to_pylist()]


# Numbers in the field `type`.
ALL_PARTITIONS, FILES_OF_PARTITION, COLUMN_STATISTICS, KEY_FILTER = 1, 2, 3, 4
RECORD_LOCATION, PARTITION_STATISTICS, SECONDARY_ENTRY = 5, 6, 7


# Java's compactions read older records by it, so that it is Java's.
COMMIT_SCHEMA_TEXT = (
    resources.files(__package__).joinpath("metadata_record.avsc").read_text("utf-8").strip()
)


def _with_meta_columns(text: str) -> str:
    record = json.loads(text)
    meta = [{"name": name, "type": ["null", "string"]} for name in META_COLUMNS]
    return json.dumps({**record, "fields": [*meta, *record["fields"]]})


RECORD_SCHEMA_TEXT = written_schema(_with_meta_columns(COMMIT_SCHEMA_TEXT))
RECORD_SCHEMA = parse_schema(RECORD_SCHEMA_TEXT, "the metadata record")


def encode_values(types: np.ndarray, column: str, content: pa.Array) -> pa.LargeBinaryArray:
    """Records of the given types, with one column of content, as HFile values."""
    count = len(content)
    columns: dict[str, pa.Array] = {
        field.name: pa.nulls(count) for field in RECORD_SCHEMA.fields if field.name != column
    }
    columns["key"] = pa.array([""] * count, pa.string())
    columns["type"] = pa.array(types.astype(np.int32))
    columns[column] = content
    encoded = encode_records(pa.table(columns), RECORD_SCHEMA, length_prefixed=False)
    offsets = pa.py_buffer(encoded.offsets)
    return large_binary(
        pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, [None, offsets, encoded.content])
    )


Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Keys with their encoded values, and keys to remove.

    Values that many keys share are held once: `places` says which value each key has. Of a
    repeated key the last entry counts, and a key that gets a value is not removed.
    """

    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray
    places: Places
    removed: pa.LargeBinaryArray
    # What is hashed instead of the keys, and instead of the removed ones.
    routes: tuple[pa.Array, pa.Array] | None = None

    @classmethod
    def of(
        cls, keys: Sequence[str], values: pa.LargeBinaryArray, removed: Sequence[str] = ()
    ) -> "Entries":
        """Entries with a value for each key."""
        return cls(_binaries(keys), values, np.arange(len(keys)), _binaries(removed))

    def __bool__(self) -> bool:
        return bool(len(self.keys) or len(self.removed))

    def routed(self, group_count: int) -> Iterator[tuple[int, "Entries"]]:
        """The touched file groups by number, each with its entries: sorted by key, keys unique."""
        keys, gone = self.routes or (self.keys, self.removed)
        added, removed = _split(keys, group_count), _split(gone, group_count)
        nothing = np.zeros(0, np.int64)
        for number in sorted(added.keys() | removed.keys()):
            yield number, self._of_group(added.get(number, nothing), removed.get(number, nothing))

    def _of_group(self, added: Places, removed: Places) -> "Entries":
        keys, gone = self.keys.take(pa.array(added)), self.removed.take(pa.array(removed))
        return Entries(keys, self.values, self.places[added], gone).in_order()

    def in_order(self) -> "Entries":
        """The entries of one file group, as `routed` hands them over."""
        kept = last_of_each(self.keys)
        keys = self.keys.take(pa.array(kept))
        gone = self.removed.take(pa.array(last_of_each(self.removed)))
        if len(keys) and len(gone):
            gone = gone.filter(pc.invert(pc.is_in(gone, value_set=keys)))
        return Entries(keys, self.values, self.places[kept], gone)

    def own_values(self) -> pa.LargeBinaryArray:
        """The value of each key."""
        return self.values.take(pa.array(self.places))


def joined(parts: Sequence[Entries]) -> Entries:
    """What several say, as one; none of them is routed by anything but its keys."""
    firsts = np.cumsum([0, *(len(one.values) for one in parts)])
    return Entries(
        pa.concat_arrays([one.keys for one in parts]),
        pa.concat_arrays([one.values for one in parts]),
        np.concatenate([one.places + first for one, first in zip(parts, firsts, strict=False)]),
        pa.concat_arrays([one.removed for one in parts]),
    )


NO_ENTRIES = Entries(EMPTY_BINARY, EMPTY_BINARY, np.zeros(0, np.int64), EMPTY_BINARY)


def _binaries(texts: Sequence[str]) -> pa.LargeBinaryArray:
    return pa.array([text.encode() for text in texts], pa.large_binary())


def _split(keys: pa.Array, group_count: int) -> dict[int, Places]:
    return places_of_groups(file_group_index(keys, group_count))


def places_of_groups(numbers: Places) -> dict[int, Places]:
    """The places of the keys of each file group, in their order."""
    if not len(numbers):
        return {}
    numbers = numbers.astype(np.int32)
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    parts = np.split(order, starts[1:])
    return dict(zip(found.tolist(), parts, strict=True))


def last_of_each(keys: pa.LargeBinaryArray) -> Places:
    """The places of the keys in ascending order, for a repeated key only its last one."""
    order = pc.sort_indices(keys)
    ascending = keys.take(order)
    places: Places = order.to_numpy().astype(np.int64)
    if len(keys) < 2:
        return places
    following = ascending.slice(1)
    is_last = np.ones(len(keys), np.bool_)
    is_last[:-1] = pc.not_equal(ascending.slice(0, len(keys) - 1), following).to_numpy(
        zero_copy_only=False
    )
    return places[is_last]


# What Java gives to a filter here; one of more keys than the last number tells next to nothing.
_FILTER_ENTRIES = 10_000
_FILTER_ENTRIES_MAX = 100_000


def base_name(file_id: str, instant: str, token: str) -> str:
    return f"{file_id}_{token}_{instant}.hfile"


def base_file(entries: Entries, created_ms: int) -> bytes:
    """An HFile of sorted entries; it may have none."""
    key_filter = None
    if len(entries.keys) <= _FILTER_ENTRIES_MAX:
        key_filter = build_bloom(
            entries.keys, entries=_FILTER_ENTRIES, entries_max=_FILTER_ENTRIES_MAX
        )
    return write_hfile(
        entries.keys,
        entries.own_values(),
        schema_text=RECORD_SCHEMA_TEXT,
        created_ms=created_ms,
        key_filter=key_filter,
    )


# Initialisations count from zero instead of having a time.
_INITIAL = "00000000000000"
# The first log of a file group is empty and has this write token.
INITIAL_TOKEN = "0-0-0"


def is_initial(instant: str) -> bool:
    """Whether an instant is one at which partitions were started."""
    return instant.startswith(_INITIAL)


def log_name(file_id: str, instant: str, token: str) -> str:
    return f".{file_id}_{instant}.log.1_{token}"


def initial_log_name(file_id: str, instant: str) -> str:
    """The name of the log that a file group begins with; it holds nothing."""
    return log_name(file_id, instant, INITIAL_TOKEN)


@cache
def initial_log(instant: str) -> bytes:
    return delete_block(_deletes(pa.array([], pa.large_binary()), ""), BlockOrigin(instant))


def known_content(log: LogFile) -> bytes | None:
    """The content of a log that can be nothing but the empty beginning of a file group.

    An initialisation writes entries into base files, and its logs hold one empty block. As long as
    that block is, a log has no room for a key beside the block's instant.
    """
    is_first = is_initial(log.instant) and log.write_token == INITIAL_TOKEN and log.version == 1
    content = initial_log(log.instant) if is_first else None
    return content if content is not None and len(content) == log.size_bytes else None


def group_log(partition: str, entries: Entries, instant: str, created_ms: int) -> bytes:
    """The log of one file group: a block of entries, a block of removed keys, or both."""
    origin = BlockOrigin(instant, RECORD_SCHEMA_TEXT)
    blocks = []
    if len(entries.keys):
        blocks.append(_entries_block(entries, origin, created_ms))
    if len(entries.removed):
        blocks.append(delete_block(_deletes(entries.removed, partition), origin))
    return b"".join(blocks)


def compacted_log(
    partition: str, entries: Entries, instant: str, created_ms: int, compacted: tuple[str, ...]
) -> bytes:
    """A log that takes the place of others: what they removed, and then what they say."""
    origin = BlockOrigin(instant, RECORD_SCHEMA_TEXT, compacted)
    blocks = []
    if len(entries.removed) or not len(entries.keys):
        blocks.append(delete_block(_deletes(entries.removed, partition), origin))
    if len(entries.keys):
        blocks.append(_entries_block(entries, origin, created_ms))
    return b"".join(blocks)


def _entries_block(entries: Entries, origin: BlockOrigin, created_ms: int) -> bytes:
    hfile = write_hfile(
        entries.keys,
        entries.own_values(),
        schema_text=RECORD_SCHEMA_TEXT,
        created_ms=created_ms,
    )
    return hfile_block(hfile, origin)


def _deletes(keys: pa.LargeBinaryArray, partition: str) -> Deletes:
    partitions = pa.array([partition], pa.string()).take(pa.array(np.zeros(len(keys), np.int64)))
    everything = np.ones(len(keys), np.bool_)
    return Deletes(keys.cast(pa.large_string()), partitions, (), everything)
