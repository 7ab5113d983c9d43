"""One file group of a metadata partition: a base HFile and log blocks on top of it.

Lookups read the blocks of the base file they need; logs are small and are read whole, once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakewarden.engine.formats.hfile import Entries, HFile
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.deletes import deletes
from lakewarden.engine.formats.log.effective import effective_blocks
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.formats.range_source import BufferSource, FileSource
from lakewarden.engine.metadata.records import Run
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.view.slices import FileSlice


@dataclass(frozen=True, slots=True)
class Selection:
    """Which keys are wanted: all, those given, or those that begin with one of the given."""

    keys: tuple[bytes, ...] | None = None
    prefixes: tuple[bytes, ...] | None = None
    # Distinct keys in any order, which may be many.
    among: pa.LargeBinaryArray | None = None

    def of(self, file: HFile) -> Entries:
        if self.keys is not None:
            return file.lookup(self.keys)
        if self.prefixes is not None:
            return file.lookup_prefixes(self.prefixes)
        if self.among is not None:
            return file.matching(self.among)
        return file.entries()


ALL = Selection()


def exactly(keys: Sequence[str]) -> Selection:
    return Selection(keys=tuple(sorted({key.encode() for key in keys})))


def beginning_with(prefixes: Sequence[str]) -> Selection:
    return Selection(prefixes=tuple(sorted({prefix.encode() for prefix in prefixes})))


class MetadataFileGroup:
    """Reads one slice of a metadata file group; `is_valid` judges the instants of log blocks."""

    def __init__(
        self, storage: Storage, slice_: FileSlice, is_valid: Callable[[str], bool]
    ) -> None:
        self._storage = storage
        self._slice = slice_
        self._is_valid = is_valid
        self._blocks: tuple[Block, ...] | None = None
        self._base: HFile | None = None

    @property
    def file_id(self) -> str:
        return self._slice.file_id

    def runs(self, selection: Selection) -> list[Run]:
        """What the base file and each log block say of the selected keys, oldest first."""
        runs = [self._run(self._base_file(), selection)] if self._slice.base_file else []
        for block in self.log_blocks:
            if block.kind is BlockKind.DELETE:
                # Keys that were not selected do no harm: they meet no version of theirs.
                keys = deletes(block).keys.cast(pa.large_binary())
                runs.append(Run(keys, None, "", block.path))
            else:
                path = f"{block.path} (block at {block.offset})"
                runs.append(self._run(HFile(BufferSource(block.content), path), selection))
        return runs

    def _run(self, file: HFile, selection: Selection) -> Run:
        entries = selection.of(file)
        return Run(entries.keys, entries.values, file.schema_text, file.path)

    def _base_file(self) -> HFile:
        if self._base is None:
            assert self._slice.base_file is not None
            path = self._slice.path(self._slice.base_file)
            self._base = HFile(FileSource(self._storage.open(path)), path)
        return self._base

    @property
    def log_blocks(self) -> tuple[Block, ...]:
        """The blocks of the logs that count, oldest first."""
        if self._blocks is None:
            # A log compaction of what is not there has nothing that is not in the base file.
            self._blocks = effective_blocks(self._all_blocks(), self._is_valid, keeps_orphans=False)
        return self._blocks

    def _all_blocks(self) -> Iterator[Block]:
        for log in self._slice.log_files:
            path = self._slice.path(log)
            for block in read_blocks(self._storage.read(path), path):
                if block.kind is BlockKind.CORRUPT:
                    raise block.corrupt(block.reason)
                yield block
