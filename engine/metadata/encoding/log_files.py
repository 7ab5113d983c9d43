"""Log files of the metadata table: one for each file group that a commit touches."""

from functools import cache

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.formats.hfile import write_hfile
from lakewarden.engine.formats.log.deletes import Deletes
from lakewarden.engine.formats.log.write import BlockOrigin, delete_block, hfile_block
from lakewarden.engine.metadata.encoding.entries import Entries
from lakewarden.engine.metadata.encoding.record_schema import RECORD_SCHEMA_TEXT

# Initialisations count from zero instead of having a time.
_INITIAL = "00000000000000"
# The first log of a file group is empty and has this write token.
INITIAL_TOKEN = "0-0-0"


def is_initial(instant: str) -> bool:
    """Whether an instant is one at which partitions were started."""
    return instant.startswith(_INITIAL)


def log_name(file_id: str, instant: str, token: str) -> str:
    return f".{file_id}_{instant}.log.1_{token}"


def initial_log_name(file_id: str, instant: str) -> str:
    """The name of the log that a file group begins with; it holds nothing."""
    return log_name(file_id, instant, INITIAL_TOKEN)


@cache
def initial_log(instant: str) -> bytes:
    return delete_block(_deletes(pa.array([], pa.large_binary()), ""), BlockOrigin(instant))


def known_content(log: LogFile) -> bytes | None:
    """The content of a log that can be nothing but the empty beginning of a file group.

    An initialisation writes entries into base files, and its logs hold one empty block. As long as
    that block is, a log has no room for a key beside the block's instant.
    """
    is_first = is_initial(log.instant) and log.write_token == INITIAL_TOKEN and log.version == 1
    content = initial_log(log.instant) if is_first else None
    return content if content is not None and len(content) == log.size_bytes else None


def group_log(partition: str, entries: Entries, instant: str, created_ms: int) -> bytes:
    """The log of one file group: a block of entries, a block of removed keys, or both."""
    origin = BlockOrigin(instant, RECORD_SCHEMA_TEXT)
    blocks = []
    if len(entries.keys):
        blocks.append(_entries_block(entries, origin, created_ms))
    if len(entries.removed):
        blocks.append(delete_block(_deletes(entries.removed, partition), origin))
    return b"".join(blocks)


def compacted_log(
    partition: str, entries: Entries, instant: str, created_ms: int, compacted: tuple[str, ...]
) -> bytes:
    """A log that takes the place of others: what they removed, and then what they say."""
    origin = BlockOrigin(instant, RECORD_SCHEMA_TEXT, compacted)
    blocks = []
    if len(entries.removed) or not len(entries.keys):
        blocks.append(delete_block(_deletes(entries.removed, partition), origin))
    if len(entries.keys):
        blocks.append(_entries_block(entries, origin, created_ms))
    return b"".join(blocks)


def _entries_block(entries: Entries, origin: BlockOrigin, created_ms: int) -> bytes:
    hfile = write_hfile(
        entries.keys,
        entries.own_values(),
        schema_text=RECORD_SCHEMA_TEXT,
        created_ms=created_ms,
    )
    return hfile_block(hfile, origin)


def _deletes(keys: pa.LargeBinaryArray, partition: str) -> Deletes:
    partitions = pa.array([partition], pa.string()).take(pa.array(np.zeros(len(keys), np.int64)))
    everything = np.ones(len(keys), np.bool_)
    return Deletes(keys.cast(pa.large_string()), partitions, (), everything)
