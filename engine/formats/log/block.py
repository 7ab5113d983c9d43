"""Log blocks: the pieces a log file is made of, as values over the file's own bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest, corrupt

MAGIC = b"#HUDI#"
LOG_FORMAT_VERSION = 1


class BlockKind(IntEnum):
    """What a block holds, by its number in the file."""

    COMMAND = 0
    DELETE = 1
    # Never written: what a reader calls the bytes it cannot make sense of.
    CORRUPT = 2
    AVRO = 3
    HFILE = 4
    PARQUET = 5
    CDC = 6


class Header(IntEnum):
    """What a block says about itself, by the key's number in the file."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


DATA_KINDS = frozenset({BlockKind.AVRO, BlockKind.HFILE, BlockKind.PARQUET})


@dataclass(frozen=True, slots=True)
class Block:
    """One block; `content` is a view into the file's bytes, `offset` the place of its magic."""

    kind: BlockKind
    path: str
    offset: int
    size_bytes: int
    content: memoryview = field(repr=False)
    content_offset: int = 0
    headers: Mapping[Header, str] = field(default_factory=dict, repr=False)
    # Why the bytes make no sense; only corrupt blocks have it.
    reason: str = ""

    @property
    def instant(self) -> str:
        """The instant that wrote the block; archived timelines and corrupt blocks have none."""
        return self.headers.get(Header.INSTANT_TIME, "")

    @property
    def is_partial(self) -> bool:
        """Whether the records have only some of the table's columns."""
        return self.headers.get(Header.IS_PARTIAL, "").lower() == "true"

    @property
    def compacted_instants(self) -> tuple[str, ...]:
        """The instants whose blocks this one replaces; empty unless log compaction wrote it."""
        listed = self.headers.get(Header.COMPACTED_BLOCK_TIMES, "")
        return tuple(part.strip() for part in listed.split(",") if part.strip())

    @property
    def schema_text(self) -> str:
        """The Avro schema of the records, or `CorruptTable` when the block lacks it."""
        text = self.headers.get(Header.SCHEMA)
        if text is None:
            raise self.corrupt("The block has no schema header.")
        return text

    def corrupt(self, reason: str, within: int = 0) -> CorruptTable:
        """The error to raise for bad content; `within` counts from the content's first byte."""
        return corrupt(self.path, self.content_offset + within, reason)


ROLLBACK_COMMAND = "0"


def rolled_back_instant(block: Block) -> str:
    """The instant whose earlier blocks no longer count; any other command is refused by name."""
    command = block.headers.get(Header.COMMAND_BLOCK_TYPE, "")
    if command != ROLLBACK_COMMAND:
        raise InvalidRequest(
            "unsupported_log_command",
            what=f"{block.path} has the command {command!r} at byte {block.offset}.",
            why="Lakewarden knows only rollback commands.",
            now="Read the table with the engine that wrote it.",
            path=block.path,
            command=command,
        )
    target = block.headers.get(Header.TARGET_INSTANT_TIME)
    if not target:
        raise block.corrupt("A rollback command does not say which instant it rolls back.")
    return target
