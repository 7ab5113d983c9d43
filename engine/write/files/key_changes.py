"""Key changes: which keys a log brought to life in its file group, and which ones it removed.

An update in a log may bring back a key that an earlier log deleted, and a delete may come too late
to count. Only the rows that readers see before and after tell.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakewarden.engine.file_groups.file_names import LogFile
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.read.merge.key_index import KeyIndex
from lakewarden.engine.read.merge.slice_reader import SliceReader
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.write.files.spec import WriteSpec


@dataclass(frozen=True, slots=True, eq=False)
class KeyChanges:
    """Keys that came to live in a file group, and keys that it lost."""

    arrived: pa.StringArray
    left: pa.StringArray


def key_changes(
    storage: Storage, spec: WriteSpec, slice_: FileSlice, log: LogFile, keys: pa.StringArray
) -> KeyChanges:
    """What a new log on top of a slice did to some keys."""
    distinct = keys.unique()
    index = KeyIndex(distinct)
    reader = SliceReader(storage, replace(spec.read, columns=(RECORD_KEY,)))
    before = _living(reader, slice_, index, len(distinct))
    with_log = replace(slice_, log_files=(*slice_.log_files, log))
    after = _living(reader, with_log, index, len(distinct))
    return KeyChanges(
        distinct.filter(pa.array(after & ~before)), distinct.filter(pa.array(before & ~after))
    )


def _living(reader: SliceReader, slice_: FileSlice, index: KeyIndex, count: int) -> np.ndarray:
    """Which of the index's keys readers see in a slice."""
    living = np.zeros(count, dtype=bool)
    for batch in reader.batches(slice_):
        _, found = index.find(batch.column(0))
        living[found] = True
    return living
