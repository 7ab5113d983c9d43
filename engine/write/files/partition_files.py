"""Partition metadata: the file by which Java knows that a folder is a partition of the table."""

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.formats.properties import format_properties
from lakewarden.engine.kernel.errors import Unavailable
from lakewarden.engine.storage.port import Storage, Unknown

_COMMENT = "partition metadata"


def ensure_partition(storage: Storage, partition: str, instant: str) -> None:
    """Make a folder a partition before its first file comes; losing to another writer is fine."""
    path = f"{partition}/{PARTITION_METADATA}" if partition else PARTITION_METADATA
    depth = len(partition.split("/")) if partition else 0
    content = {"commitTime": instant, "partitionDepth": str(depth)}
    outcome = storage.create_exclusive(path, format_properties(content, _COMMENT))
    if isinstance(outcome, Unknown) and storage.stat(path) is None:
        raise Unavailable(
            "partition_not_made",
            what=f"It is not known whether {path} was created.",
            why=f"{outcome.cause}.",
            now="Try again: readers do not see the partition without this file.",
            path=path,
        )
