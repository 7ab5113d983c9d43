"""The metadata record: its schema as Java writes it down, and columns of values encoded by it.

Data blocks and HFiles name a schema with the five meta columns in front, which stay empty; commits
name the schema without them. The real key is the HFile's; the field `key` is left empty, too.
"""

import json
from importlib import resources

import numpy as np
import pyarrow as pa

from lakewarden.engine.formats.avro.encode import encode_records
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.avro.written_schema import written_schema
from lakewarden.engine.formats.octets import large_binary
from lakewarden.engine.table.schema import META_COLUMNS

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
