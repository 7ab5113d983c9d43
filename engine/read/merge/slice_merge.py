"""Merging a slice for good: what a compaction reads, and what it tells of the logs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.formats.log.block import DATA_KINDS, Block, BlockKind
from lakewarden.engine.read.merge.merge import Merger, Tally


@dataclass(frozen=True, slots=True)
class LogFigures:
    """What the logs of a slice are made of."""

    blocks: int
    rollback_blocks: int
    data_bytes: int
    # Deletes among them; known once the blocks are read.
    records: int = 0

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> "LogFigures":
        data = [block for block in blocks if block.kind in DATA_KINDS]
        commands = sum(block.kind is BlockKind.COMMAND for block in blocks)
        return cls(len(blocks), commands, sum(len(block.content) for block in data))


class SliceMerge:
    """A slice on its way into a new base file: first the rows of the old one, then the others."""

    def __init__(
        self,
        merger: Merger,
        logs: LogFigures,
        base: Iterator[pa.Table],
        finished: Callable[[pa.Table], pa.Table],
    ) -> None:
        self._merger = merger
        self._base = base
        self._finished = finished
        self.logs = logs

    @property
    def tally(self) -> Tally:
        """What the logs have changed; complete after the last row."""
        return self._merger.tally

    @property
    def keys(self) -> int:
        """How many distinct keys the logs are about."""
        return self._merger.keys

    def base_rows(self) -> Iterator[pa.Table]:
        """The rows of the old base file, batch by batch, and at last those that logs replace.

        Texts that the file keeps as dictionaries stay so, in the new rows, too.
        """
        for number, rows in enumerate(self._base):
            if number == 0:
                self._merger.keep_dictionaries(rows.schema)
            yield self._finished(self._merger.merge_batch(rows))
        yield from map(self._finished, self._merger.updated())

    def new_rows(self) -> pa.Table:
        """Afterwards: the rows whose keys the old base file does not have."""
        return self._finished(self._merger.rest())
