"""Entries: what is written decodes to what was meant, in the group where readers look for it."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.hashing import file_group_index
from lakewarden.engine.metadata.encoding.records import Entries
from lakewarden.engine.metadata.entries.changes import ColumnSummary, Located, NewFile, TableChange
from lakewarden.engine.metadata.entries.row_index_entries import record_entries
from lakewarden.engine.metadata.entries.statistics_entries import column_stats_entries
from tests.engine.metadata.java_entries import of_entries

# Anything that UTF-8 can hold.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def entries(added: list[str], removed: list[str]) -> Entries:
    values = pa.array([str(place).encode() for place in range(len(added))], pa.large_binary())
    return Entries.of(added, values, removed)


@given(st.lists(TEXT), st.lists(TEXT), st.integers(1, 12))
def test_routing_loses_nothing(added: list[str], removed: list[str], count: int) -> None:
    wanted = dict(zip(added, range(len(added)), strict=True))
    found: dict[str, int] = {}
    gone: set[str] = set()
    for _, group in entries(added, removed).routed(count):
        keys = [key.decode() for key in group.keys.to_pylist()]
        found |= dict(zip(keys, map(int, group.own_values().to_pylist()), strict=True))
        gone |= {key.decode() for key in group.removed.to_pylist()}
    assert found == wanted
    assert gone == set(removed) - set(added)


@given(st.lists(TEXT), st.lists(TEXT), st.integers(1, 12))
def test_groups_are_sorted_by_bytes_without_repetition(
    added: list[str], removed: list[str], count: int
) -> None:
    for number, group in entries(added, removed).routed(count):
        for keys in (group.keys.to_pylist(), group.removed.to_pylist()):
            assert keys == sorted(set(keys))
            texts = pa.array([key.decode() for key in keys], pa.string())
            assert set(file_group_index(texts, count).tolist()) <= {number}


@given(st.lists(st.tuples(TEXT, st.lists(TEXT, max_size=4)), max_size=5))
def test_places_decode_to_what_they_were(places: list[tuple[str, list[str]]]) -> None:
    located = [
        Located(pa.array(keys, pa.string()), FileGroupId(partition, f"file {at}"))
        for at, (partition, keys) in enumerate(places)
    ]
    reported = record_entries(located, (), lambda _: 1234, is_partitioned=False)
    found = {}
    for shard in reported.values():
        found |= of_entries(shard)[0]
    wanted = {
        key: (partition, f"file {at}")
        for at, (partition, keys) in enumerate(places)
        for key in keys
    }
    assert {
        key: (
            record["recordIndexMetadata"][1]["partitionName"],
            record["recordIndexMetadata"][1]["fileId"],
        )
        for key, record in found.items()
    } == wanted


def test_a_file_id_with_a_uuid_is_kept_as_numbers() -> None:
    file_id = "897fc212-5a0f-48b7-9d5c-eb65492869dd-0"
    located = [Located(pa.array(["k000"]), FileGroupId("a", file_id))]
    (shard,) = record_entries(located, (), lambda _: 1795007221761, is_partitioned=False).values()
    # As Java wrote it to the golden table cow_record_index_partitioned.
    assert of_entries(shard)[0]["k000"]["recordIndexMetadata"][1] == {
        "partitionName": "a",
        "fileIdHighBits": -8538892984395020105,
        "fileIdLowBits": -7107547291645875747,
        "fileIndex": 0,
        "fileId": "",
        "instantTime": 1795007221761,
        "fileIdEncoding": 0,
        "position": None,
    }


def test_a_file_id_that_only_resembles_a_uuid_is_kept_as_text() -> None:
    file_id = "897FC212-5a0f-48b7-9d5c-eb65492869dd-0"
    located = [Located(pa.array(["k"]), FileGroupId("a", file_id))]
    (shard,) = record_entries(located, (), lambda _: 1, is_partitioned=False).values()
    place = of_entries(shard)[0]["k"]["recordIndexMetadata"][1]
    assert (place["fileIdEncoding"], place["fileId"]) == (1, file_id)


@given(
    st.dictionaries(
        TEXT, st.one_of(st.integers(-(2**63), 2**63 - 1), TEXT, st.binary()), max_size=8
    )
)
def test_bounds_decode_to_what_they_were(bounds: dict[str, int | str | bytes]) -> None:
    columns = {
        name: ColumnSummary(pa.scalar(value), pa.scalar(value), 1, 0)
        for name, value in bounds.items()
    }
    change = TableChange(instant="1", new_files=(NewFile("p", "f", 1, columns),))
    records, _ = of_entries(column_stats_entries(change, (), is_early=False))
    found = {}
    for record in records.values():
        statistics = record["ColumnStatsMetadata"][1]
        found[statistics["columnName"]] = statistics["minValue"][1]["value"]
    assert found == bounds
