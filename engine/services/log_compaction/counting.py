"""Counting blocks: what the logs of slices hold, from the heads of their blocks alone."""

from collections.abc import Iterator, Sequence
from functools import partial

from lakewarden.engine.file_groups.recorded_sizes import assert_whole
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.effective import effective_blocks
from lakewarden.engine.formats.log.reader import read_heads
from lakewarden.engine.formats.range_source import FileRanges
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.services.log_compaction.plan import Counted
from lakewarden.engine.storage.port import Storage


def count_blocks(
    storage: Storage, slices: Sequence[FileSlice], *, threads: int
) -> tuple[Counted, ...]:
    """The slices with what their logs hold, looked at side by side: that waits for the storage."""
    executor = LocalExecutor(min(threads, max(len(slices), 1)))
    return tuple(executor.map(partial(_counted, storage), slices))


def _counted(storage: Storage, slice_: FileSlice) -> Counted:
    blocks = effective_blocks(_heads(storage, slice_), lambda _: True)
    return Counted(
        slice_,
        blocks=len(blocks),
        instants=len({block.instant for block in blocks}),
        has_partial_records=any(block.is_partial for block in blocks),
    )


def _heads(storage: Storage, slice_: FileSlice) -> Iterator[Block]:
    for log in slice_.log_files:
        path = slice_.path(log)
        with storage.open(path) as file:
            assert_whole(path, log, file.size())
            for block in read_heads(FileRanges(file), path):
                if block.kind is BlockKind.CORRUPT:
                    raise block.corrupt(block.reason)
                yield block
