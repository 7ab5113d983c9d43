"""Damaged instant files: any bytes give a value or a corrupt table, never anything else."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from tests.engine.formats.instant_metadata.instant_files import InstantFile, one_of_each_kind

FILES = list(one_of_each_kind().values())
AVRO_FILES = [file for file in FILES if not file.is_json]
PLANS = [file for file in FILES if file.kind.endswith(".requested")]
COMMITS = [file for file in FILES if file.kind in ("commit", "deltacommit", "replacecommit")]


def outcome(decode: Callable[[bytes, str], Any], payload: bytes) -> object:
    try:
        return decode(payload, "some/path")
    except (CorruptTable, InvalidRequest) as error:
        return error


@settings(deadline=None)
@given(st.sampled_from(FILES), st.data())
def test_a_flipped_bit_gives_a_writable_value_or_a_named_error(
    file: InstantFile, data: st.DataObject
) -> None:
    payload = bytearray(file.payload)
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    value = outcome(file.codec.decode, bytes(payload))
    if not isinstance(value, Exception):
        assert isinstance(file.codec.encode(value), bytes)


@settings(deadline=None)
@given(st.sampled_from(AVRO_FILES), st.data())
def test_a_cut_file_is_corrupt(file: InstantFile, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, len(file.payload) - 1))
    error = outcome(file.codec.decode, file.payload[:size])
    assert isinstance(error, CorruptTable)
    assert error.path == "some/path"


@settings(deadline=None)
@given(st.sampled_from(FILES), st.binary())
def test_random_bytes_give_a_value_or_a_named_error(file: InstantFile, payload: bytes) -> None:
    for content in (payload, b"Obj\x01" + payload, b"{" + payload, payload[:8] + file.payload[8:]):
        outcome(file.codec.decode, content)


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.kind)
def test_an_empty_or_torn_plan_has_a_name_of_its_own(file: InstantFile) -> None:
    for size in (0, 1, 4, len(file.payload) // 2, len(file.payload) - 1):
        error = outcome(file.codec.decode, file.payload[:size])
        assert isinstance(error, CorruptTable)
        assert (error.code, error.path) == ("torn_plan", "some/path")


@pytest.mark.parametrize("file", COMMITS, ids=lambda file: file.kind)
def test_an_empty_commit_is_empty_metadata(file: InstantFile) -> None:
    metadata = file.codec.decode(b"", "some/path")
    assert metadata == type(metadata)()
