"""Command blocks: a rollback tells readers to forget earlier blocks of one instant (version 6)."""

from lakewarden.engine.formats.log.block import Block, Header
from lakewarden.engine.kernel.errors import InvalidRequest

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
