"""Writing a base file for a commit: the file, its statistics, and what the commit says of it."""

from collections.abc import Iterable

import pyarrow as pa

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata.commit import RuntimeStats, WriteStat
from lakewarden.engine.metadata.entries.changes import NewFile
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.transaction.state.markers import MarkedFile
from lakewarden.engine.write.files.base_files import EXTENSION, BaseContent, store_base_file
from lakewarden.engine.write.files.file_content import gatherer_of, with_gathered
from lakewarden.engine.write.files.file_summaries import NanWatch, base_file_summaries
from lakewarden.engine.write.files.key_footers import KeyGatherer
from lakewarden.engine.write.files.meta_columns import without_identity
from lakewarden.engine.write.files.spec import WriteSpec


def new_base_file(key: FileGroupId, spec: WriteSpec, task_number: int) -> MarkedFile:
    """The place and name of the base file that a task is going to make."""
    token = spec.write_token(task_number)
    return MarkedFile(key.partition, f"{key.file_id}_{token}_{spec.instant}.{EXTENSION}")


def write_base_file(
    storage: Storage,
    spec: WriteSpec,
    target: MarkedFile,
    file_id: str,
    parts: Iterable[pa.Table],
    keys: KeyGatherer,
) -> tuple[NewFile, WriteStat]:
    """Write a base file; what came of it, as far as the file itself tells."""
    watch, gathered = NanWatch(), gatherer_of(spec.indexes)
    looked_at: Iterable[pa.Table] = gathered.over(watch.over(parts))
    if spec.has_virtual_keys:
        looked_at = map(without_identity, looked_at)
    content = BaseContent(spec.schema.with_meta(), looked_at, spec.records_text)
    stored = store_base_file(storage, target.path, content, keys, spec.files)
    columns = base_file_summaries(
        storage, target.path, stored.footer, spec.summarised, watch.columns
    )
    known = NewFile(target.partition, target.name, stored.size_bytes, columns)
    file = with_gathered(known, stored.keys, gathered, spec.indexes, spec.files.bloom)
    rows = stored.footer.num_rows
    return file, file_stat(target, file_id, stored.size_bytes, num_writes=rows)


def file_stat(target: MarkedFile, file_id: str, size_bytes: int, *, num_writes: int) -> WriteStat:
    """What a commit says of any new file."""
    return WriteStat(
        file_id=file_id,
        path=target.path,
        partition_path=target.partition,
        num_writes=num_writes,
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
        runtime_stats=RuntimeStats(),
    )
