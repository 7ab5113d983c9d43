"""Partition metadata: the file by which Java knows that a folder is a partition of the table."""

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.formats.properties import format_properties
from lakewarden.engine.kernel.errors import Unavailable
from lakewarden.engine.storage.port import Storage, Unknown

_COMMENT = "partition metadata"
# Where tables keep it as a file of their base format, its footer says the same.
BASE_FORMAT_METADATA = f"{PARTITION_METADATA}.parquet"


def ensure_partition(storage: Storage, partition: str, instant: str) -> None:
    """Make a folder a partition before its first file comes; losing to another writer is fine."""
    path = f"{partition}/{PARTITION_METADATA}" if partition else PARTITION_METADATA
    outcome = storage.create_exclusive(path, format_properties(_said(partition, instant), _COMMENT))
    if isinstance(outcome, Unknown) and storage.stat(path) is None:
        raise Unavailable(
            "partition_not_made",
            what=f"It is not known whether {path} was created.",
            why=f"{outcome.cause}.",
            now="Try again: readers do not see the partition without this file.",
            path=path,
        )


def write_in_base_format(storage: Storage, partition: str, instant: str) -> None:
    """Make a folder a partition by a Parquet file, as Java does: without rows, by its footer."""
    rows = pa.table({"dummyint": pa.array([], pa.int64())})
    path = f"{partition}/{BASE_FORMAT_METADATA}" if partition else BASE_FORMAT_METADATA
    content = pa.BufferOutputStream()
    with pq.ParquetWriter(content, rows.schema, store_schema=False) as writer:
        writer.add_key_value_metadata(_said(partition, instant))
    storage.put(path, content.getvalue().to_pybytes())


def _said(partition: str, instant: str) -> dict[str, str]:
    depth = len(partition.split("/")) if partition else 0
    return {"commitTime": instant, "partitionDepth": str(depth)}
