"""Closed files: what a table keeps of files that no writer changes any more, within a bound.

A log is closed once the write that made it has completed: from version 8 on no other one appends
to it. What is kept belongs to one `Table` of one process; another one reads the files themselves.
"""

from dataclasses import dataclass, field

import pyarrow as pa

from lakewarden.engine.formats.log.block import Block
from lakewarden.engine.kernel.byte_bounded import ByteBounded

_KEPT_BYTES_MAX = 8 << 20


@dataclass(frozen=True, slots=True)
class ClosedFile:
    """What tells a closed file from all others that the table ever has.

    In the metadata table a name is not enough: what failed there is made anew by the same one, and
    completes at another time.
    """

    path: str
    size_bytes: int
    completed: str = ""


class LogKeys:
    """The blocks of a log, and the record keys of those that were looked into, by their offset."""

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self.blocks = blocks
        self.of_block: dict[int, pa.Array | pa.ChunkedArray] = {}


@dataclass(frozen=True, slots=True)
class ClosedFiles:
    """What is kept of one table: the keys of its logs, and the files of its metadata table."""

    keys: ByteBounded[LogKeys] = field(default_factory=lambda: ByteBounded(_KEPT_BYTES_MAX))
    metadata: ByteBounded[bytes] = field(default_factory=lambda: ByteBounded(_KEPT_BYTES_MAX))
