"""Every kind of index on one table, and what each says held against a recomputation.

The recomputation is plain Python over the rows and files of the table: it shares nothing with what
keeps the indexes true but the readers of data files.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden import Table
from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.bloom import parse_bloom
from lakewarden.engine.formats.hashing import (
    bloom_filter_key,
    column_stats_key,
    expression_partition_key,
)
from lakewarden.engine.formats.instant_metadata.clean import decode_plan
from lakewarden.engine.formats.log.block import BlockKind
from lakewarden.engine.formats.log.reader import read_blocks, records
from lakewarden.engine.metadata.building.create import BuildOptions, add_partitions
from lakewarden.engine.metadata.encoding.records import text_keys
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.metadata.entries.row_indexes import row_indexes
from lakewarden.engine.metadata.reading.bloom_filters import BLOOM_COLUMN
from lakewarden.engine.metadata.reading.column_stats import STATS_COLUMN, range_of
from lakewarden.engine.metadata.reading.definitions import IndexDefinition, definitions_of
from lakewarden.engine.metadata.reading.record_index import all_locations
from lakewarden.engine.metadata.reading.secondary_index import all_entries
from lakewarden.engine.metadata.writing.definitions_file import (
    NewDefinition,
    expression_index_definition,
    secondary_index_definition,
)
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.read.query.plan_query import Query, read_spec
from lakewarden.engine.services.indexing.present import PresentTable
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.table.versions import index_version
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.state.context import load_for_writing

BLOOM = "bloom_filters"
BY_NAME, BY_N = "secondary_index_by_name", "secondary_index_by_n"
BY_DAY, BY_LOW = "expr_index_by_day", "expr_index_by_low"
DAY_FORMAT = "yyyy-MM-dd"

Entry: TypeAlias = dict[str, Any]
# Smallest and largest day, how many values, and how many nulls.
Range: TypeAlias = tuple[str | None, str | None, int | None, int | None]


def definition(partition: str) -> NewDefinition | None:
    """What `index.json` says of an index of these tests; filters of keys have none."""
    match partition:
        case "secondary_index_by_name":
            return secondary_index_definition(partition, "name")
        case "secondary_index_by_n":
            return secondary_index_definition(partition, "n")
        case "expr_index_by_day":
            options = {"format": DAY_FORMAT}
            return expression_index_definition(
                partition, "column_stats", "from_unixtime", "ts", options
            )
        case "expr_index_by_low":
            return expression_index_definition(partition, "bloom_filters", "lower", "name", {})
    return None


def give(table: Table, partitions: Sequence[str]) -> None:
    """Build indexes on a table at rest, besides those that it has."""
    context = table._context({}, table.properties)
    with context.lock.hold() as held:
        snapshot = load_for_writing(context)
        config = snapshot.config
        found = (one for name in partitions if (one := definition(name)) is not None)
        made = tuple(one.of_version(index_version(config)) for one in found)
        only = replace(
            config, metadata_partitions=tuple(partitions), metadata_partitions_inflight=()
        )
        defined = definitions_of(only, {one.partition: one.record for one in made})
        indexes = row_indexes(defined, snapshot.schema().columns, context.settings)
        present = PresentTable(snapshot, context.ports.executor)
        change = TableChange(
            instant=max(
                (one.requested for one in snapshot.timeline.active.completed()), default="0" * 17
            ),
            new_files=present.files((), indexes),
            live_files=present.live_files(),
            valued=tuple(
                change
                for slice_ in present.slices()
                for change in present.values_of(slice_, indexes.secondary)
            ),
        )
        add_partitions(
            context.storage,
            config,
            partitions,
            change,
            snapshot.times,
            context.ports,
            choices=BuildOptions(definitions=made, settings=context.settings),
            assert_held=held.assert_held,
        )


def differences(table: Table) -> list[str]:
    """What the indexes of a table say that rows and files don't, and the other way round."""
    truth = _Truth(load_snapshot(table._storage))
    return [text for one in truth.state.definitions for text in truth.of(one)]


@dataclass
class _Truth:
    state: Snapshot

    def of(self, index: IndexDefinition) -> Iterator[str]:
        if index.state != "READY":
            return
        if index.partition == "record_index":
            yield from self._record_index()
        elif index.partition == BLOOM:
            yield from self._filters(index.partition, self._keys_of)
        elif index.partition.startswith("secondary_index_"):
            yield from self._secondary(index)
        elif index.index_type == BLOOM:
            lowered = {"lower": lambda text: text.lower()}[index.function]
            yield from self._filters(
                index.partition, lambda path: self._values(path, index.columns[0], lowered)
            )
        elif index.partition.startswith("expr_index_"):
            yield from self._expression(index)

    def slices(self) -> list[FileSlice]:
        groups = self.state.file_groups(self.state.visibility(), None, use_metadata=False)
        return [group.latest_merged() for group in groups]

    def _rows(self, columns: Sequence[str]) -> Iterator[tuple[FileSlice, dict[str, object]]]:
        names = tuple(dict.fromkeys((RECORD_KEY, *columns)))
        reader = SliceReader(self.state.storage, read_spec(self.state, Query(columns=names), None))
        for slice_ in self.slices():
            for row in reader.table(slice_).to_pylist():
                yield slice_, row

    def _record_index(self) -> Iterator[str]:
        want = {(row[RECORD_KEY], slice_.key) for slice_, row in self._rows(())}
        have = {
            (one.key, one.file_group_id)
            for one in all_locations(self.state.metadata.record_index())
        }
        yield from _apart("record_index", want, have)

    def _secondary(self, index: IndexDefinition) -> Iterator[str]:
        column = index.columns[0]
        want = {(_java(row[column]), row[RECORD_KEY]) for _, row in self._rows([column])}
        found = all_entries(self.state.metadata.partition(index.partition), index)
        yield from _apart(index.partition, want, {(one.value, one.record_key) for one in found})

    def _filters(self, partition: str, values: Callable[[str], set[str]]) -> Iterator[str]:
        have = self._entries(partition, BLOOM_COLUMN)
        for slice_ in self.slices():
            if slice_.base_file is None:
                continue
            key = bloom_filter_key(slice_.partition, slice_.base_file.name)
            path = slice_.path(slice_.base_file)
            if key not in have:
                yield f"{partition}: no filter of {path}"
                continue
            entry, wanted = have[key], frozenset(values(path))
            if not _might_contain(entry["bloomFilter"], entry["type"], path, wanted):
                yield f"{partition}: {path} has values that its filter lacks"
        known = {bloom_filter_key(one, name) for one, name in self._all_files()}
        yield from (f"{partition}: an entry of no file: {key}" for key in have.keys() - known)

    def _keys_of(self, path: str) -> set[str]:
        rows = self._base(path).select([RECORD_KEY])
        return set(rows.column(0).to_pylist())

    def _values(self, path: str, column: str, work: Callable[[str], str]) -> set[str]:
        return {work(one) for one in self._base(path).column(column).to_pylist() if one is not None}

    def _base(self, path: str) -> pa.Table:
        with BaseReader(self.state.storage).opened(path) as source:
            return pq.ParquetFile(source).read()

    def _expression(self, index: IndexDefinition) -> Iterator[str]:
        """Each live file has its bounds, and each partition those of all its live files."""
        (column,), partition = index.columns, index.partition
        have = self._entries(partition, STATS_COLUMN)
        wanted: dict[str, list[Range]] = defaultdict(list)
        known = set()
        for slice_ in self.slices():
            files = [slice_.base_file] if slice_.base_file else []
            compacted = self._compacted(slice_)
            for file in (*files, *slice_.log_files):
                path = slice_.path(file)
                rows = self._log(path) if isinstance(file, LogFile) else self._base(path)
                key = column_stats_key(column, slice_.partition, file.name)
                if not len(rows):
                    if key in have:
                        yield f"{partition}: {path} has no rows, and an entry"
                    continue
                want = _day_range(rows.column(column).to_pylist())
                # What a log compaction has replaced is in no read any more.
                if file.instant not in compacted:
                    wanted[slice_.partition].append(want)
                if key not in have:
                    yield f"{partition}: no entry of {path}"
                elif _told(have[key]) != want:
                    yield f"{partition}: {path} says {_told(have[key])} instead of {want}"
        for one, name in self._all_files():
            known.add(column_stats_key(column, one, name))
        if self.state.config.is_partitioned:
            for one, ranges in wanted.items():
                key = expression_partition_key(column, one)
                known.add(key)
                yield from self._covers(partition, one, have.get(key), ranges)
            known |= {expression_partition_key(column, one) for one, _ in self._all_files()}
        yield from (f"{partition}: an entry of no file: {key}" for key in have.keys() - known)

    def _covers(
        self, partition: str, one: str, entry: Entry | None, ranges: list[Range]
    ) -> Iterator[str]:
        if entry is None:
            yield f"{partition}: no entry of partition {one!r}"
            return
        low, high, *_ = _told(entry)
        lows = [found[0] for found in ranges if found[0] is not None]
        highs = [found[1] for found in ranges if found[1] is not None]
        is_wide = low is not None and high is not None
        if lows and not (is_wide and low <= min(lows) and high >= max(highs)):
            yield f"{partition}: partition {one!r} says {low}..{high}, is {min(lows)}..{max(highs)}"

    def _compacted(self, slice_: FileSlice) -> frozenset[str]:
        """The instants whose logs a later log of a slice has taken the place of."""
        logs = (slice_.path(log) for log in slice_.log_files)
        blocks = (one for path in logs for one in read_blocks(self.state.storage.read(path), path))
        return frozenset(instant for one in blocks for instant in one.compacted_instants)

    def _log(self, path: str) -> pa.Table:
        blocks = read_blocks(self.state.storage.read(path), path)
        parts = [
            records(one, None) for one in blocks if one.kind in (BlockKind.AVRO, BlockKind.PARQUET)
        ]
        return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})

    def _entries(self, partition: str, column: str) -> dict[str, Entry]:
        newest = self.state.metadata.partition(partition).all([column]).newest()
        values = newest.values.column(column).to_pylist()
        return dict(zip(text_keys(newest.keys), values, strict=True))

    def _all_files(self) -> Iterator[tuple[str, str]]:
        for partition, files in self.state.source(use_metadata=False).files().items():
            for file in files:
                yield partition, file.name
        yield from self._files_of_cleans()

    def _files_of_cleans(self) -> Iterator[tuple[str, str]]:
        """A clean that died may have deleted files, and reports them when it is finished."""
        active = self.state.timeline.active
        for instant in active.pending((Action.CLEAN,)):
            files = active.files_of(instant)
            if files is None or files.requested is None:
                continue
            content = active.read(files.requested.instant)
            plan = decode_plan(content, files.requested.entry.path)
            for partition, gone in plan.file_paths_to_be_deleted_per_partition.items():
                for file in gone:
                    yield partition, str(file.file_path).rpartition("/")[2]


@lru_cache
def _might_contain(content: bytes, kind: str, path: str, values: frozenset[str]) -> bool:
    """Whether a filter has all of these values; the same one is asked after each step."""
    bloom = parse_bloom(content, kind, path)
    return bool(bloom.might_contain(pa.array(sorted(values), pa.string())).all())


def _java(value: object) -> str | None:
    return None if value is None else str(value)


def _day_range(values: list[int | None]) -> Range:
    days = sorted(
        datetime.fromtimestamp(one, UTC).strftime("%Y-%m-%d") for one in values if one is not None
    )
    nulls = len(values) - len(days)
    return (days[0] if days else None, days[-1] if days else None, len(values), nulls)


def _told(entry: Entry) -> Range:
    found = range_of(entry)
    bounds = [None if one is None else one.as_py() for one in (found.minimum, found.maximum)]
    return (*bounds, found.value_count, found.null_count)


def _apart(what: str, want: set[Any], have: set[Any]) -> Iterator[str]:
    if want != have:
        missing = sorted(want - have, key=str)[:5]
        extra = sorted(have - want, key=str)[:5]
        yield f"{what}: lacks {missing}, has besides {extra}"
