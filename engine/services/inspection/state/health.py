"""The health of a table: figures that show what needs care, and the call that mends it.

A threshold is the table's own setting where one means the same. The others say from which value on
a user should look. Nothing is changed, and only the file names of the table are read.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.index.locate import latest_file_slices
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.metadata.reading.table import load_metadata_table
from lakewarden.engine.metadata.writing.compact import DELTACOMMITS_MAX, deltacommits_since
from lakewarden.engine.services.clean.draft import CleanRequest, draft_clean
from lakewarden.engine.services.compaction.settings import DELTA_COMMITS, progress_of
from lakewarden.engine.services.inspection.state.attempts import locks
from lakewarden.engine.services.inspection.state.blockers import (
    Blocker,
    Remedies,
    Remedy,
    find_blockers,
)
from lakewarden.engine.services.retention.settings import KEEP_MAX_COMMITS, retention_of
from lakewarden.engine.snapshot import Snapshot, retrying_view
from lakewarden.engine.table.config import TableType
from lakewarden.engine.transaction.state.context import TABLE_SERVICES, Context
from lakewarden.engine.transaction.state.pending_instants import (
    Pending,
    age_seconds,
    began_at_ms,
    looked,
    pending_instants,
)
from lakewarden.engine.transaction.state.plan_scope import INGESTION
from lakewarden.engine.transaction.sweep.sweep import due_sweeps
from lakewarden.engine.write.routing.sizes import SMALL_FILE_LIMIT

# A partition with one small file is as it should be; with others beside it they could be one.
SMALL_FILES_MAX = 10
LOG_TO_BASE_RATIO_MAX = 0.5
PLAN_AGE_MAX_SECONDS = 24 * 3600
WRITE_AGE_MAX_SECONDS = 3600
LOCK_AGE_MAX_SECONDS = 300
UNCLEANED_FILES_MAX = 100


class HealthVerdict(StrEnum):
    """What a figure means."""

    OK = "ok"
    ATTENTION = "attention"
    # A figure without a threshold.
    SHOWN = "shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRow:
    """One figure, and what to call where it is beyond its threshold."""

    metric: str
    value: float | None
    unit: str
    threshold: float | None = None
    verdict: HealthVerdict = HealthVerdict.SHOWN
    remedy_python: str = ""
    remedy_sql: str = ""


@dataclass(frozen=True, slots=True)
class _Scene:
    """What is known of the table at one moment."""

    context: Context
    snapshot: Snapshot
    slices: Sequence[FileSlice]
    pending: Sequence[Pending]
    blockers: Sequence[Blocker]

    @property
    def remedies(self) -> Remedies:
        return Remedies(self.context.storage.location.uri)


def health(context: Context) -> tuple[HealthRow, ...]:
    """The figures of a table as it is now, in groups: files, plans, history, metadata, lock."""
    return retrying_view(partial(looked, context), partial(_health, context))


def _health(context: Context, snapshot: Snapshot) -> tuple[HealthRow, ...]:
    scene = _Scene(
        context,
        snapshot,
        latest_file_slices(snapshot, None),
        pending_instants(context, snapshot),
        find_blockers(context, snapshot),
    )
    return tuple(row for measure in _MEASURES for row in measure(scene))


def _files(scene: _Scene) -> Iterator[HealthRow]:
    limit = scene.context.settings[SMALL_FILE_LIMIT]
    small: dict[str, int] = {}
    for slice_ in scene.slices:
        if slice_.base_file is not None and slice_.base_file.size_bytes < limit:
            small[slice_.partition] = small.get(slice_.partition, 0) + 1
    yield _shown("file_groups", len(scene.slices), "file groups")
    yield _shown("table_size", sum(one.size_bytes for one in scene.slices), "bytes")
    mergeable = sum(count for count in small.values() if count > 1)
    yield _judged("small_files", mergeable, "files", SMALL_FILES_MAX, scene.remedies.cluster())


def _logs(scene: _Scene) -> Iterator[HealthRow]:
    logs = sum(log.size_bytes for slice_ in scene.slices for log in slice_.log_files)
    base = sum(slice_.base_file.size_bytes for slice_ in scene.slices if slice_.base_file)
    if scene.snapshot.config.table_type is not TableType.MERGE_ON_READ:
        return
    compact = scene.remedies.compact()
    ratio = logs / base if base else float(bool(logs))
    yield _judged("log_to_base_ratio", ratio, "ratio", LOG_TO_BASE_RATIO_MAX, compact)
    progress = progress_of(scene.snapshot.timeline.active)
    since = 0 if progress is None else progress.since_completed
    most = scene.context.settings[DELTA_COMMITS]
    yield _judged("deltacommits_since_compaction", since, "commits", most, compact)


def _plans(scene: _Scene) -> Iterator[HealthRow]:
    plans = [one for one in scene.pending if one.action in TABLE_SERVICES]
    writes = [one for one in scene.pending if one.action in INGESTION]
    yield _shown("pending_plans", len(plans), "plans")
    yield _oldest(scene, "oldest_plan_age", plans, PLAN_AGE_MAX_SECONDS)
    yield _shown("pending_writes", len(writes), "writes")
    yield _oldest(scene, "oldest_write_age", writes, WRITE_AGE_MAX_SECONDS)
    first = next((Remedy(one.remedy_python, one.remedy_sql) for one in scene.blockers), Remedy())
    yield _judged("blockers", len(scene.blockers), "instants", 0, first)


def _history(scene: _Scene) -> Iterator[HealthRow]:
    context, active = scene.context, scene.snapshot.timeline.active
    yield _uncleaned(scene)
    most = context.settings[KEEP_MAX_COMMITS]
    count = len(active.completed())
    yield _judged("unarchived_commits", count, "commits", most, scene.remedies.archive())
    yield _shown("savepoints", len(active.savepoints()), "savepoints")
    due = len(due_sweeps(context))
    yield _judged("due_sweeps", due, "instants", 0, scene.remedies.sweep())


def _metadata(scene: _Scene) -> Iterator[HealthRow]:
    config = scene.snapshot.config
    if not config.metadata_partitions:
        yield _shown("metadata_table_lag", None, "deltacommits")
        return
    since = deltacommits_since(load_metadata_table(scene.context.storage, config))
    most = scene.context.settings[DELTACOMMITS_MAX]
    remedy = scene.remedies.maintain_metadata()
    yield _judged("metadata_table_lag", since, "deltacommits", most, remedy)


def _lock(scene: _Scene) -> Iterator[HealthRow]:
    for one in locks(scene.context):
        age = 0.0 if one.owner is None else one.age_seconds or 0.0
        yield _judged("lock_held", age, "seconds", LOCK_AGE_MAX_SECONDS, Remedy())


_MEASURES: tuple[Callable[[_Scene], Iterator[HealthRow]], ...] = (
    _files,
    _logs,
    _plans,
    _history,
    _metadata,
    _lock,
)


def _oldest(scene: _Scene, metric: str, pending: Sequence[Pending], most: float) -> HealthRow:
    ages = {
        one.requested: age_seconds(scene.context, began_at_ms(scene.snapshot, one.requested)) or 0.0
        for one in pending
    }
    oldest = max(pending, key=lambda one: ages[one.requested], default=None)
    if oldest is None:
        return _judged(metric, 0, "seconds", most, Remedy())
    remedy = scene.remedies.end(scene.snapshot, oldest)
    return _judged(metric, ages[oldest.requested], "seconds", most, remedy)


def _uncleaned(scene: _Scene) -> HealthRow:
    """The files that a clean would remove now; unknown where settings contradict each other."""
    try:
        retention = retention_of(scene.context.settings)
    except InvalidRequest:
        return _shown("uncleaned_files", None, "files")
    draft = draft_clean(scene.context, scene.snapshot, retention, CleanRequest())
    remedy = scene.remedies.clean()
    return _judged("uncleaned_files", len(draft.files), "files", UNCLEANED_FILES_MAX, remedy)


def _shown(metric: str, value: float | None, unit: str) -> HealthRow:
    return HealthRow(metric=metric, value=value, unit=unit)


def _judged(metric: str, value: float, unit: str, most: float, remedy: Remedy) -> HealthRow:
    row = replace(_shown(metric, value, unit), threshold=most)
    if value <= most:
        return replace(row, verdict=HealthVerdict.OK)
    return replace(
        row,
        verdict=HealthVerdict.ATTENTION,
        remedy_python=remedy.python,
        remedy_sql=remedy.sql,
    )
