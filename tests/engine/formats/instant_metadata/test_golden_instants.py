"""Every instant file written by Java: read, written again, and read by somebody else."""

import io

import fastavro
import pytest

from lakewarden.engine.formats.avro.container import write_container
from lakewarden.engine.formats.avro.schema import written_schema
from lakewarden.engine.formats.instant_metadata.binding import record_of
from tests.engine.formats.instant_metadata.instant_files import ALL_TABLES, CODECS, instant_files
from tests.golden_tables import GOLDEN_TABLES

MARKER_SIZE = 16


def record_in(payload: bytes) -> object:
    """The record of a file, as fastavro reads it."""
    (record,) = fastavro.reader(io.BytesIO(payload))
    return record


def schema_in(payload: bytes) -> str:
    """The schema that a file names, to the letter."""
    text = fastavro.reader(io.BytesIO(payload)).metadata["avro.schema"]
    assert isinstance(text, str)
    return text


def without_markers(payload: bytes) -> bytes:
    """A file without the random marker that stands in its header and at its end."""
    return payload.replace(payload[-MARKER_SIZE:], b"")


@pytest.mark.parametrize("table", ALL_TABLES)
def test_what_is_read_is_written_and_read_again(table: str) -> None:
    for file in instant_files(table):
        value = file.codec.decode(file.payload, file.path)
        assert file.codec.decode(file.codec.encode(value), file.path) == value


@pytest.mark.parametrize("table", ALL_TABLES)
def test_what_is_written_holds_the_same_record(table: str) -> None:
    for file in instant_files(table):
        if not file.is_json:
            written = file.codec.encode(file.codec.decode(file.payload, file.path))
            assert record_in(written) == record_in(file.payload), file.path


@pytest.mark.parametrize("table", GOLDEN_TABLES)
def test_an_avro_file_would_be_written_to_the_letter_by_javas_schema(table: str) -> None:
    for file in instant_files(table):
        if not file.is_json:
            value = file.codec.decode(file.payload, file.path)
            schema = schema_in(file.payload)
            assert schema_in(file.codec.encode(value)) == written_schema(schema), file.path
            written = write_container(record_of(value), schema)
            assert without_markers(written) == without_markers(file.payload), file.path


def test_the_tables_hold_every_kind_of_file_there_is() -> None:
    kinds = {file.kind for table in ALL_TABLES for file in instant_files(table)}
    assert kinds == set(CODECS)
