"""Tasks that make data files: what is in them, and what they say of themselves."""

import io
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.bloom import BloomOptions
from lakewarden.engine.formats.log.block import BlockKind
from lakewarden.engine.formats.log.deletes import deletes
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.formats.parquet_footer import key_footer
from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.table.config import TableType
from lakewarden.engine.table.merge_rules import MergeMode, MergeRules, PartialMode
from lakewarden.engine.transaction.state.markers import read_markers
from lakewarden.engine.write.files.base_files import base_writer
from lakewarden.engine.write.files.spec import FileOptions, WrittenFile
from tests.engine.write.small_table import (
    COLUMNS,
    COMMIT_TIME,
    EVENT_TIME,
    Row,
    SmallTable,
    keyed,
    write_spec_of,
)

MOR = TableType.MERGE_ON_READ
A1, B1, C1 = ({"k": key, "v": f"{key}1", "ts": 1} for key in "abc")


def filled(**options: object) -> SmallTable:
    """A table with the keys a, b and c."""
    table = SmallTable(write_spec_of(**options))  # type: ignore[arg-type]
    table.write(inserts=keyed([A1, B1, C1]))
    return table


def newer(row: Row, **changes: object) -> Row:
    return {**row, **changes}


def parquet(table: SmallTable, written: WrittenFile) -> pq.ParquetFile:
    return pq.ParquetFile(io.BytesIO(table.storage.read(str(written.stat.path))))


def test_a_new_file_has_its_rows_behind_the_meta_columns() -> None:
    table = SmallTable(write_spec_of())
    written = table.write(inserts=keyed([A1, B1]))
    assert table.rows()[1] == {
        "_hoodie_commit_time": "20260101000000001",
        "_hoodie_commit_seqno": "20260101000000001_1_1",
        "_hoodie_record_key": "b",
        "_hoodie_partition_path": "p",
        "_hoodie_file_name": written.file.name,
        **B1,
    }
    assert written.file.name == f"{table.key.file_id}_1-0-0_20260101000000001.parquet"
    assert (written.arrived.to_pylist(), written.left.to_pylist()) == (["a", "b"], [])


def test_a_new_file_is_counted_as_java_counts_it() -> None:
    stat = SmallTable(write_spec_of()).write(inserts=keyed([A1, B1])).stat
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes) == (2, 2, 0)
    assert (stat.prev_commit, stat.prev_base_file, stat.log_files) == ("null", None, None)
    assert stat.total_write_bytes == stat.file_size_in_bytes > 0


def test_sizes_are_true_and_statistics_those_of_the_rows() -> None:
    table = SmallTable(write_spec_of())
    written = table.write(inserts=keyed([A1, newer(B1, ts=7)]))
    entry = table.storage.stat(str(written.stat.path))
    assert entry is not None
    assert entry.size_bytes == written.file.size_bytes == written.stat.file_size_in_bytes
    assert written.file.columns["ts"].maximum.as_py() == 7


def test_the_footer_has_what_java_looks_for() -> None:
    table = SmallTable(write_spec_of())
    file = parquet(table, table.write(inserts=keyed([B1, A1])))
    footer = key_footer(file.metadata)
    assert (footer.min_key, footer.max_key, footer.bloom_type) == ("a", "b", "DYNAMIC_V0")
    bloom = footer.bloom_filter("f")
    assert bloom is not None
    assert bloom.might_contain(pa.array(["a", "b", "z"])).tolist() == [True, True, False]
    assert file.metadata.metadata[b"writer.model.name"] == b"avro"
    assert file.metadata.metadata[b"parquet.avro.schema"] == table.spec.records_text.encode()
    assert b"ARROW:schema" not in file.metadata.metadata
    assert all(file.metadata.row_group(0).column(at).compression == "ZSTD" for at in range(8))


def test_the_largest_key_is_javas() -> None:
    table = SmallTable(write_spec_of())
    keys = ["\uffee", "\U0001f600", "z"]
    written = table.write(inserts=keyed([newer(A1, k=key) for key in keys]))
    assert key_footer(parquet(table, written).metadata).max_key == "\uffee"


@pytest.mark.parametrize(
    ("codec", "stored"),
    [("gzip", "GZIP"), ("snappy", "SNAPPY"), ("uncompressed", "UNCOMPRESSED")],
)
def test_codecs(codec: str, stored: str) -> None:
    table = SmallTable(write_spec_of(files=FileOptions(codec=codec)))
    file = parquet(table, table.write(inserts=keyed([A1])))
    assert file.metadata.row_group(0).column(0).compression == stored


def test_every_file_is_announced_and_its_folder_is_a_partition() -> None:
    table = filled()
    assert b"partitionDepth=1" in table.storage.read("p/.hoodie_partition_metadata")
    written = table.write(updates=keyed([newer(A1, v="a2")]))
    for instant in ("20260101000000001", "20260101000000002"):
        (marked,) = read_markers(table.storage, instant) or ()
        assert table.storage.stat(marked.path) is not None
    markers = table.storage.walk(".hoodie/.temp/20260101000000002")
    assert [entry.name for entry in markers] == [f"{written.file.name}.marker.MERGE"]


def test_a_rewrite_keeps_what_does_not_change() -> None:
    table = filled()
    written = table.write(
        updates=keyed([newer(A1, v="a2")]), inserts=keyed([{"k": "d", "v": "d1", "ts": 1}])
    )
    a, b, _, d = table.rows()
    assert (a["_hoodie_commit_time"], a["v"]) == ("20260101000000002", "a2")
    assert (b["_hoodie_commit_time"], b["_hoodie_commit_seqno"]) == (
        "20260101000000001",
        "20260101000000001_1_1",
    )
    assert a["_hoodie_commit_seqno"] != d["_hoodie_commit_seqno"]
    assert {row["_hoodie_file_name"] for row in table.rows()} == {written.file.name}


def test_a_rewrite_is_counted_by_what_it_did() -> None:
    table = filled()
    first = table.slice
    assert first is not None
    assert first.base_file is not None
    written = table.write(
        updates=keyed([newer(A1, v="a2"), newer(B1, ts=2)], deletes=[1]),
        inserts=keyed([{"k": "d", "v": "d1", "ts": 1}]),
    )
    stat = written.stat
    assert (stat.num_writes, stat.num_update_writes, stat.num_deletes, stat.num_inserts) == (
        3,
        1,
        1,
        1,
    )
    assert (stat.prev_commit, stat.prev_base_file) == ("20260101000000001", first.base_file.name)
    assert (written.arrived.to_pylist(), written.left.to_pylist()) == (["d"], ["b"])


def test_a_late_delete_loses_nothing() -> None:
    table = filled()
    written = table.write(updates=keyed([newer(A1, ts=0)], deletes=[0]))
    assert table.values() == {"a": "a1", "b": "b1", "c": "c1"}
    assert len(written.left) == 0


def test_a_file_may_lose_all_its_rows() -> None:
    table = filled()
    written = table.write(updates=keyed([A1, B1, C1], unconditional=range(3)))
    assert table.rows() == []
    file = parquet(table, written)
    assert file.metadata.num_row_groups == 0
    footer = key_footer(file.metadata)
    assert footer.bloom_text is not None
    assert (footer.min_key, footer.max_key) == (None, None)
    assert not written.file.columns
    table.write(inserts=keyed([A1]))
    assert table.values() == {"a": "a1"}


def test_a_key_that_moves_away_leaves_whatever_its_ordering_value() -> None:
    table = filled()
    written = table.write(departures=keyed([newer(A1, ts=-5)]))
    assert table.values() == {"b": "b1", "c": "c1"}
    assert written.left.to_pylist() == ["a"]


def test_inserts_do_not_meet_rows_of_their_key() -> None:
    table = filled()
    table.write(inserts=keyed([newer(A1, v="again"), newer(A1, v="and again")]))
    assert [row["v"] for row in table.rows() if row["k"] == "a"] == ["a1", "again", "and again"]


def test_keys_alone_can_delete() -> None:
    table = filled()
    written = table.delete_keys("a")
    assert table.values() == {"b": "b1", "c": "c1"}
    assert written.left.to_pylist() == ["a"]


def test_an_old_filter_is_extended_when_keys_are_many() -> None:
    table = filled()
    rows = pa.table(
        {
            "k": pa.array(np.arange(200_001)).cast(pa.string()),
            "v": pa.nulls(200_001, pa.string()),
            "ts": np.zeros(200_001, np.int64),
        }
    )
    table.write(inserts=keyed(rows))
    written = table.write(
        updates=keyed([newer(A1, ts=9)], deletes=[0]), inserts=keyed([newer(A1, k="new")])
    )
    footer = key_footer(parquet(table, written).metadata)
    bloom = footer.bloom_filter("f")
    assert bloom is not None
    assert bloom.might_contain(pa.array(["b", "200000", "new"])).all()
    assert bloom.last_row_entries == 200_001 + 3 + 1 - bloom.row_entries
    assert (footer.min_key, footer.max_key) == ("0", "new")


def test_a_log_has_its_records_and_then_its_deletes() -> None:
    table = filled(table_type=MOR)
    written = table.write(updates=keyed([newer(A1, v="a2"), newer(B1, ts=5)], deletes=[1]))
    assert written.file.name == f".{table.key.file_id}_20260101000000002.log.1_2-0-0"
    blocks = list(read_blocks(table.storage.read(str(written.stat.path)), "log"))
    assert [block.kind for block in blocks] == [BlockKind.AVRO, BlockKind.DELETE]
    gone = deletes(blocks[1])
    assert gone.partitions.to_pylist() == ["p"]
    assert gone.ordering[0].to_pylist() == [5]
    assert table.values() == {"a": "a2", "c": "c1"}
    assert {row["_hoodie_file_name"] for row in table.rows() if row["k"] == "a"} == {
        table.key.file_id
    }


def test_a_log_is_counted_as_java_counts_it() -> None:
    table = filled(table_type=MOR)
    written = table.write(updates=keyed([newer(A1, v="a2"), newer(B1, ts=5)], deletes=[1]))
    stat = written.stat
    assert (stat.num_writes, stat.num_update_writes, stat.num_deletes, stat.num_inserts) == (
        1,
        1,
        1,
        0,
    )
    assert (stat.prev_commit, stat.log_version, stat.log_offset) == ("20260101000000002", 1, 0)
    assert (stat.base_file, stat.log_files) == ("", (written.file.name,))
    assert written.left.to_pylist() == ["b"]


def test_deletes_by_operation_are_the_integer_zero() -> None:
    table = filled(table_type=MOR)
    written = table.write(updates=keyed([newer(A1, ts=-3)], unconditional=[0]))
    (block,) = read_blocks(table.storage.read(str(written.stat.path)), "log")
    assert deletes(block).is_unconditional.all()
    assert table.values() == {"b": "b1", "c": "c1"}
    assert written.file.columns["ts"].value_count == 0


def test_parquet_logs() -> None:
    table = filled(table_type=MOR, files=FileOptions(has_parquet_logs=True))
    written = table.write(updates=keyed([newer(A1, v="a2")]))
    (block,) = read_blocks(table.storage.read(str(written.stat.path)), "log")
    assert block.kind is BlockKind.PARQUET
    assert table.values()["a"] == "a2"


def test_inserts_into_a_group_with_logs_rewrite_it_with_them() -> None:
    table = filled(table_type=MOR)
    table.write(updates=keyed([newer(A1, v="a2"), newer(B1, ts=5)], deletes=[1]))
    written = table.write(updates=keyed([newer(C1, v="c2")]), inserts=keyed([newer(B1, v="b3")]))
    assert table.slice is not None
    assert not table.slice.log_files
    assert table.values() == {"a": "a2", "b": "b3", "c": "c2"}
    assert written.arrived.to_pylist() == ["b"]


def test_a_bucket_takes_new_keys_into_logs() -> None:
    spec = replace(write_spec_of(table_type=MOR), logs_take_inserts=True)
    table = SmallTable(spec)
    written = table.write(inserts=keyed([A1]))
    assert written.stat.log_files == (written.file.name,)
    assert written.stat.num_inserts == 1
    assert table.values() == {"a": "a1"}


def test_values_that_do_not_count_stay_as_they_were() -> None:
    rules = MergeRules(MergeMode.EVENT_TIME, ("ts",), PartialMode.IGNORE_DEFAULTS)
    table = filled(rules=rules)
    table.write(updates=keyed([newer(A1, v=None, ts=2)]))
    assert table.values()["a"] == "a1"


def test_an_old_file_gets_new_columns() -> None:
    table = filled()
    columns = pa.schema([*COLUMNS, pa.field("n", pa.int32())])
    table.spec = write_spec_of(columns)
    table.write(updates=keyed([{**A1, "n": 5}], columns=columns))
    assert [row["n"] for row in table.rows()] == [5, None, None]


@pytest.mark.parametrize("threads", [1, 2])
def test_many_batches_come_out_in_order_and_whole(threads: int) -> None:
    table = SmallTable(write_spec_of(threads=threads, files=FileOptions(row_group_bytes=1 << 20)))
    count = 200_000
    texts = pa.array(np.arange(count)).cast(pa.string())
    rows = pa.table({"k": texts, "v": texts, "ts": np.ones(count, np.int64)})
    table.write(inserts=keyed(rows))
    changed = rows.slice(0, count // 2).set_column(1, "v", pa.array(["new"] * (count // 2)))
    written = table.write(updates=keyed(changed.take(np.arange(0, count // 2, 7))))
    found = parquet(table, written)
    assert found.metadata.num_row_groups > 2
    values = found.read(["k", "v"]).sort_by("k")
    expected = [
        "new" if number < count // 2 and number % 7 == 0 else str(number) for number in range(count)
    ]
    assert values.column("v").to_pylist() == [expected[int(k)] for k in values["k"].to_pylist()]


def test_full_filters_stand_in_for_saturated_ones() -> None:
    bloom = BloomOptions(entries=10, entries_max=10)
    table = SmallTable(write_spec_of(files=FileOptions(bloom=bloom)))
    rows = [newer(A1, k=str(number)) for number in range(200)]
    footer = key_footer(parquet(table, table.write(inserts=keyed(rows))).metadata)
    found = footer.bloom_filter("f")
    assert found is not None
    assert found.might_contain(pa.array(["stranger"])).all()


change = st.tuples(
    st.sampled_from("abcdef"),
    st.integers(0, 4),
    st.sampled_from(["upsert", "upsert", "delete", "remove", "depart"]),
)


@settings(max_examples=60)
@given(
    st.lists(st.lists(change, min_size=1, max_size=5, unique_by=lambda one: one[0]), max_size=6),
    st.sampled_from([EVENT_TIME, COMMIT_TIME]),
)
def test_writes_on_a_table_are_writes_on_a_dictionary(
    writes: list[list[tuple[str, int, str]]], rules: MergeRules
) -> None:
    table = SmallTable(write_spec_of(rules=rules))
    table.write(inserts=keyed([A1, B1]))
    model = {"a": (1, "a1"), "b": (1, "b1")}
    live = {"a", "b"}
    for turn, changes in enumerate(writes):
        known = [one for one in changes if one[0] in model]
        new = [one for one in changes if one[0] not in model and one[2] == "upsert"]
        kept = [one for one in known if one[2] != "depart"]
        rows = [{"k": key, "v": f"{key}-{turn}", "ts": ts} for key, ts, _ in kept]
        written = table.write(
            updates=keyed(
                rows,
                deletes=[at for at, one in enumerate(kept) if one[2] == "delete"],
                unconditional=[at for at, one in enumerate(kept) if one[2] == "remove"],
            ),
            inserts=keyed([{"k": key, "v": f"{key}-{turn}", "ts": ts} for key, ts, _ in new]),
            departures=keyed(
                [{"k": key, "v": "", "ts": ts} for key, ts, how in known if how == "depart"]
            ),
        )
        for key, ts, how in known:
            late = rules is EVENT_TIME and ts < model[key][0]
            if how in ("remove", "depart") or (how == "delete" and not late):
                del model[key]
            elif how == "upsert" and not late:
                model[key] = ts, f"{key}-{turn}"
        model |= {key: (ts, f"{key}-{turn}") for key, ts, _ in new}
        assert table.values() == {key: value for key, (_, value) in model.items()}
        live = (live - set(written.left.to_pylist())) | set(written.arrived.to_pylist())
        assert live == set(model)


def tracked() -> SmallTable:
    """A merge-on-read table with an index of where keys live."""
    table = SmallTable(replace(write_spec_of(table_type=MOR), tracks_keys=True))
    table.write(inserts=keyed([A1, B1, C1]))
    return table


def test_a_log_that_brings_a_key_back_says_so() -> None:
    table = tracked()
    gone = table.write(updates=keyed([A1, B1], unconditional=[0, 1]))
    assert gone.left.to_pylist() == ["a", "b"]
    back = table.write(updates=keyed([newer(A1, v="a3", ts=9), newer(C1, v="c3")]))
    assert (back.arrived.to_pylist(), back.left.to_pylist()) == (["a"], [])
    assert table.values() == {"a": "a3", "c": "c3"}


def test_a_late_delete_in_a_log_loses_no_key() -> None:
    table = tracked()
    written = table.write(updates=keyed([newer(A1, ts=0), newer(B1, ts=2)], deletes=[0, 1]))
    assert written.left.to_pylist() == ["b"]
    assert table.values() == {"a": "a1", "c": "c1"}


def test_a_file_that_cannot_be_read_leaves_nothing_new() -> None:
    table = filled()
    assert table.slice is not None
    assert table.slice.base_file is not None
    table.storage.put(table.slice.path(table.slice.base_file), b"PAR1 torn")
    before = table.storage.list("p")
    with pytest.raises(CorruptTable):
        table.write(updates=keyed([A1]))
    assert table.storage.list("p") == before


def test_keys_that_came_with_logs_get_into_the_filter() -> None:
    count = 200_001
    table = SmallTable(write_spec_of(table_type=MOR))
    rows = pa.table(
        {
            "k": pa.array(np.arange(count)).cast(pa.string()),
            "v": pa.nulls(count, pa.string()),
            "ts": np.zeros(count, np.int64),
        }
    )
    table.write(inserts=keyed(rows))
    # The group is told to update a key that it does not have, as when one comes back.
    table.write(updates=keyed([newer(A1, k="revived")]))
    written = table.write(inserts=keyed([newer(A1, k="new")]))
    bloom = key_footer(parquet(table, written).metadata).bloom_filter("f")
    assert bloom is not None
    assert bloom.might_contain(pa.array(["0", "revived", "new"])).all()


class _Fetched(io.BytesIO):
    """A file that counts the bytes that are read of it."""

    count = 0

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self.count += len(found)
        return found


def test_a_large_value_is_read_without_those_behind_it() -> None:
    rows = pa.table({"v": [f"{number:04d}" * (1 << 16) for number in range(16)]})
    stream = io.BytesIO()
    options = FileOptions(codec="uncompressed", uses_dictionaries=False)
    with base_writer(pa.PythonFile(stream), rows.schema, rows, options) as writer:
        writer.write_table(rows)
    source = _Fetched(stream.getvalue())
    file = pq.ParquetFile(source, buffer_size=1 << 16, pre_buffer=False)
    assert next(file.iter_batches(1)).num_rows == 1
    assert source.count < rows.nbytes / 2
