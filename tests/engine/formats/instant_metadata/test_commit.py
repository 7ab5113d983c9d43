"""Commit metadata in its two forms."""

import io
import json
from collections.abc import Mapping

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.formats.instant_metadata import commit, replace
from lakewarden.engine.formats.instant_metadata.binding import record_of
from lakewarden.engine.formats.instant_metadata.commit import (
    CommitMetadata,
    Operation,
    RuntimeStats,
    WriteStat,
)
from lakewarden.engine.kernel.errors import CorruptTable

LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=8)
# What can be a place in a table, by its partition or as a file of it.
NAMES = st.from_regex(r"[\w=é .-]{1,8}x", fullmatch=True)
PLACES = st.from_regex(r"[\w=é -]{1,6}(/[\w=é -]{1,6})?", fullmatch=True)
STATS = st.builds(
    WriteStat,
    file_id=NAMES,
    path=st.none() | PLACES,
    num_writes=LONGS,
    log_version=st.none() | st.integers(-(2**31), 2**31 - 1),
    log_files=st.none() | st.lists(NAMES, max_size=3).map(tuple),
    cdc_stats=st.none() | st.dictionaries(PLACES, LONGS, max_size=2),
    runtime_stats=st.none() | st.builds(RuntimeStats, LONGS, LONGS, st.none()),
)
STATS_BY_PARTITION = st.dictionaries(PLACES, st.lists(STATS, max_size=3).map(tuple), max_size=3)


@settings(deadline=None)
@given(STATS_BY_PARTITION, st.dictionaries(TEXTS, TEXTS, max_size=2), st.booleans())
def test_what_is_written_is_what_fastavro_reads(
    stats: Mapping[str, tuple[WriteStat, ...]], extra: Mapping[str, str], compacted: bool
) -> None:
    metadata = CommitMetadata(
        partition_to_write_stats=stats,
        compacted=compacted,
        extra_metadata=extra,
        operation_type=Operation.UPSERT,
    )
    payload = commit.encode(metadata)
    (record,) = fastavro.reader(io.BytesIO(payload))
    assert record == record_of(metadata)
    assert commit.decode(payload, "p") == metadata


@settings(deadline=None)
@given(STATS_BY_PARTITION)
def test_json_and_avro_give_the_same_value(stats: Mapping[str, tuple[WriteStat, ...]]) -> None:
    metadata = CommitMetadata(partition_to_write_stats=stats)
    payload = json.dumps(record_of(metadata)).encode()
    assert commit.decode(payload, "p") == metadata


def test_all_fields_of_a_write_stat_are_declared_in_the_order_of_the_schema() -> None:
    stat = record_of(WriteStat())
    schema = fastavro.reader(io.BytesIO(commit.encode(CommitMetadata()))).writer_schema
    by_partition = schema["fields"][0]["type"][1]["values"]
    assert list(stat) == [field["name"] for field in by_partition["items"]["fields"]]
    assert len(stat) == 31


def test_unknown_keys_of_json_are_ignored() -> None:
    payload = b'{"writeStats": [1], "partitionToWriteStats": {"": [{"totalValidLogBlocks": 0}]}}'
    metadata = commit.decode(payload, "p")
    assert metadata == CommitMetadata(partition_to_write_stats={"": (WriteStat(),)})


def test_a_replace_commit_of_version_6_is_json_with_replaced_ids() -> None:
    payload = b'{"operationType": "CLUSTER", "partitionToReplaceFileIds": {"p=1": ["a-0", "b-0"]}}'
    assert replace.decode(payload, "p") == replace.ReplaceCommitMetadata(
        operation_type="CLUSTER", partition_to_replace_file_ids={"p=1": ("a-0", "b-0")}
    )


def test_a_replace_commit_can_be_read_as_a_commit() -> None:
    stats = {"p": (WriteStat(file_id="f-0"),)}
    payload = replace.encode(
        replace.ReplaceCommitMetadata(
            partition_to_write_stats=stats, partition_to_replace_file_ids={"p": ("e-0",)}
        )
    )
    assert commit.decode(payload, "p") == CommitMetadata(partition_to_write_stats=stats)


@pytest.mark.parametrize(
    "payload",
    [
        b"{",
        b"{}{}",
        b'{"compacted": 1}',
        b'{"extraMetadata": {"k": "\\ud800"}}',
        b'{"operationType": "\xff"}',
        b'{"partitionToWriteStats": {"p": [{"numWrites": 1e3}]}}',
        b'{"partitionToWriteStats": ' + b"[" * 100_000,
        b'{"numWrites": ' + b"9" * 10_000 + b"}",
        b"\xef\xbb\xbf{}",
        b"[]",
        b"null",
    ],
)
def test_improper_json_is_corruption(payload: bytes) -> None:
    with pytest.raises(CorruptTable) as raised:
        commit.decode(payload, "some/path")
    assert raised.value.path == "some/path"


def test_improper_json_names_its_byte() -> None:
    with pytest.raises(CorruptTable) as raised:
        commit.decode('{"ä": x}'.encode(), "p")
    assert raised.value.offset == 7
