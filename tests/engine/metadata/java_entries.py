"""What Java wrote to the metadata tables of golden tables, decoded by fastavro as an oracle."""

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.formats.hfile import HFile
from lakewarden.engine.formats.log.block import DATA_KINDS, BlockKind
from lakewarden.engine.formats.log.deletes import deletes
from lakewarden.engine.formats.log.reader import read_blocks, records
from lakewarden.engine.formats.range_source import BufferSource
from lakewarden.engine.metadata.encoding.records import RECORD_SCHEMA_TEXT, Entries
from lakewarden.engine.metadata.entries.changes import ColumnSummary, NewFile
from lakewarden.engine.metadata.entries.summaries import (
    columns_with_nan,
    summaries_of_footer,
    summaries_of_rows,
)

Record = dict[str, Any]


@cache
def _schema(text: str) -> Any:
    return fastavro.parse_schema(json.loads(text))


def decoded(value: bytes, schema_text: str = RECORD_SCHEMA_TEXT) -> Record:
    """A metadata record, its unions with the names of their branches, without the null fields."""
    record = fastavro.schemaless_reader(
        io.BytesIO(value), _schema(schema_text), return_record_name=True
    )
    return {name: content for name, content in record.items() if content is not None}


def of_entries(entries: Entries) -> tuple[dict[str, Record], set[str]]:
    """Our entries: records by key, and the keys that are removed."""
    keys = [key.decode() for key in entries.keys.to_pylist()]
    values = map(decoded, entries.own_values().to_pylist())
    return dict(zip(keys, values, strict=True)), {
        key.decode() for key in entries.removed.to_pylist()
    }


def of_logs(folder: Path, instant: str) -> tuple[dict[str, Record], set[str]]:
    """What the logs of one instant in a folder say: records by key, and removed keys."""
    found: dict[str, Record] = {}
    gone: set[str] = set()
    for path in sorted(folder.glob(f".*_{instant}.log.*")):
        for block in read_blocks(path.read_bytes(), path.name):
            if block.kind is BlockKind.DELETE:
                gone |= {str(key) for key in deletes(block).keys.to_pylist()}
                continue
            file = HFile(BufferSource(block.content), path.name)
            entries = file.entries()
            for key, value in zip(
                entries.keys.to_pylist(), entries.values.to_pylist(), strict=True
            ):
                found[key.decode()] = decoded(value, file.schema_text)
    return found, gone


def new_file(table: Path, path: str, columns: tuple[str, ...]) -> NewFile:
    """A data file of a golden table, summarised as a writer would have done it."""
    partition, _, name = path.rpartition("/")
    content = (table / path).read_bytes()
    if name.startswith("."):
        summaries = _of_log(content, name, columns)
    else:
        file = pq.ParquetFile(io.BytesIO(content))
        with_nan = columns_with_nan(file.read())
        summaries = summaries_of_footer(file.metadata, columns, with_nan=with_nan)
    return NewFile(partition, name, len(content), summaries)


def _of_log(content: bytes, name: str, columns: tuple[str, ...]) -> dict[str, ColumnSummary]:
    blocks = [block for block in read_blocks(content, name) if block.kind in DATA_KINDS]
    tables = [records(block) for block in blocks]
    return summaries_of_rows(pa.concat_tables(tables) if tables else pa.table({}), columns)
