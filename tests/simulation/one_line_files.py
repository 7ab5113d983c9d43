"""Data files of one line, and a table service that makes them out of others.

A line holds tokens; each write adds one token to each file group it touches, and a table service
moves tokens. So what a reader sees says which writes are in the table, and how often.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lakewarden.engine.conflicts.conflicts import ObservedInstants
from lakewarden.engine.conflicts.touched_groups import PLANNED, planned_by
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.file_groups.slices import (
    FileGroupId,
    FileSlice,
    file_groups,
    load_visibility,
)
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata import replace as clustering
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, Operation, WriteStat
from lakewarden.engine.formats.instant_metadata.replace import ReplaceCommitMetadata
from lakewarden.engine.metadata.entries.changes import TableChange
from lakewarden.engine.services.planning.plan_request import (
    Draft,
    Drafted,
    PlanRequest,
    Reason,
    Refusal,
)
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.instants.instant import Action, Instant
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.abort_attempt import abort_attempt_after
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import publish, to_inflight
from lakewarden.engine.transaction.commit import Outcome, Receipt, commit, outputs_of
from lakewarden.engine.transaction.state.context import (
    Context,
    Service,
    is_cancellable,
    load_for_writing,
)
from lakewarden.engine.transaction.state.markers import MarkedFile, MarkerKind, leave_marker
from lakewarden.engine.transaction.state.plan_scope import CANCELLABLE_KEY
from lakewarden.engine.transaction.window.window import find_window

PARTITIONS = ("p=a", "p=b")
GROUPS = (FileGroupId("p=a", "f1"), FileGroupId("p=a", "f2"), FileGroupId("p=b", "f3"))
CLUSTERED = "c"


@dataclass(frozen=True, slots=True)
class Line:
    """The content of a data file."""

    tokens: tuple[str, ...]
    # The instants whose logs it stands for: only the result of a log compaction has some.
    instead_of: tuple[str, ...] = ()

    def encode(self) -> bytes:
        return f"{' '.join(sorted(self.tokens))}\n{' '.join(sorted(self.instead_of))}".encode()


def parse_line(content: bytes) -> Line:
    tokens, instead_of = content.decode().split("\n")
    return Line(tuple(tokens.split()), tuple(instead_of.split()))


def token(instant: str, file_id: str) -> str:
    """What a write adds to a file group."""
    return f"{instant}:{file_id}"


def merged(slice_: FileSlice, lines: Mapping[str, Line]) -> tuple[str, ...]:
    """The tokens of a slice: a log that a log compaction stands for counts no more."""
    names = [log.name for log in slice_.log_files]
    gone = {instant for name in names for instant in lines[name].instead_of}
    counted = [log.name for log in slice_.log_files if log.instant not in gone]
    if slice_.base_file is not None:
        counted.append(slice_.base_file.name)
    return tuple(token for name in counted for token in lines[name].tokens)


def slices_at(context: Context, snapshot: Snapshot) -> dict[FileGroupId, FileSlice]:
    """The latest slices of the table as a listing shows them."""
    visibility = load_visibility(snapshot.timeline.active, snapshot.timeline, names_decide=False)
    listed = StorageListing(context.storage).files(PARTITIONS)
    return {
        group.key: group.latest_merged()
        for partition, files in listed.items()
        for group in file_groups(partition, files, visibility)
    }


def read_slice(storage: Storage, slice_: FileSlice) -> dict[str, Line]:
    """The lines of a slice's files, by name."""
    files = [*slice_.log_files, *([slice_.base_file] if slice_.base_file else [])]
    return {file.name: parse_line(storage.read(slice_.path(file))) for file in files}


def write_base(storage: Storage, attempt: Attempt, key: FileGroupId, line: Line) -> WriteStat:
    """A base file, its marker first."""
    name = f"{key.file_id}_{_token(attempt, key)}_{attempt.instant}.parquet"
    return _write(storage, attempt, key, name, line)


def write_log(storage: Storage, attempt: Attempt, key: FileGroupId, line: Line) -> WriteStat:
    """A log file, its marker first."""
    name = f".{key.file_id}_{attempt.instant}.log.1_{_token(attempt, key)}"
    stat = _write(storage, attempt, key, name, line)
    return replace(stat, log_version=1, log_files=(name,))


def _token(attempt: Attempt, key: FileGroupId) -> str:
    """Some tasks are tried twice, as Spark does, which their files say."""
    task, _, number = attempt.write_token(0).split("-")
    return f"{task}-{sum(key.file_id.encode()) % 2}-{number}"


def _write(
    storage: Storage, attempt: Attempt, key: FileGroupId, name: str, line: Line
) -> WriteStat:
    attempt.assert_mine()
    file = MarkedFile(key.partition, name)
    leave_marker(storage, attempt.instant, file, MarkerKind.CREATE)
    content = line.encode()
    with storage.create(file.path) as stream:
        stream.write(content)
    return WriteStat(
        file_id=key.file_id,
        path=file.path,
        partition_path=key.partition,
        file_size_in_bytes=len(content),
    )


@dataclass(frozen=True, slots=True)
class Touch:
    """Which file groups a write touches: live ones by their place in order, and maybe a new one."""

    places: tuple[int, ...]
    as_logs: bool = True
    new: FileGroupId | None = None

    def keys(self, live: Iterable[FileGroupId]) -> tuple[FileGroupId, ...]:
        known = sorted(live)
        chosen = {known[place % len(known)] for place in self.places if known}
        return tuple(sorted(chosen if self.new is None else {*chosen, self.new}))


def ingest(context: Context, touch: Touch) -> Receipt:
    """A whole write: a log to each of some file groups, or a new version of their base files."""
    before = load_for_writing(context)
    slices = slices_at(context, before)
    as_logs = touch.as_logs
    keys = touch.keys(slices)
    lines = {
        key: read_slice(context.storage, slices[key])
        for key in keys
        if key in slices and not as_logs
    }
    action = Action.DELTA_COMMIT if as_logs else Action.COMMIT
    attempt = publish(context, action, claims=True).attempt
    assert attempt is not None
    with attempt:
        try:
            to_inflight(context, attempt)
            stats = []
            for key in keys:
                own = token(attempt.instant, key.file_id)
                if as_logs and key in slices:
                    stats.append(write_log(context.storage, attempt, key, Line((own,))))
                    continue
                known = merged(slices[key], lines[key]) if key in slices else ()
                stats.append(write_base(context.storage, attempt, key, Line((*known, own))))
        except Exception as cause:
            abort_attempt_after(context, attempt, cause)
            raise
        metadata = CommitMetadata(
            partition_to_write_stats=by_partition(stats), operation_type=Operation.UPSERT
        )
        return commit(
            context,
            attempt,
            Outcome(
                metadata=metadata,
                change=TableChange(instant=attempt.instant),
                touched=frozenset(keys),
                appended=frozenset(key for key in keys if as_logs and key in slices),
                seen=ObservedInstants.of(before.timeline.active),
                outputs=outputs_of(metadata),
            ),
        )


def by_partition(stats: Iterable[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    grouped: dict[str, tuple[WriteStat, ...]] = {}
    for stat in stats:
        partition = stat.partition_path or ""
        grouped[partition] = (*grouped.get(partition, ()), stat)
    return grouped


@dataclass(frozen=True, slots=True)
class LineService:
    """A table service on lines: what it plans and commits is as the real one does it."""

    service: Service

    def draft(self, context: Context, snapshot: Snapshot, plan_request: PlanRequest) -> Drafted:
        window = find_window(context, snapshot, self.service)
        if window.partitions == ():
            return self._nothing(window.why)
        active = snapshot.timeline.active
        held = {key: i for i in active.pending(PLANNED) for key in planned_by(active, i).keys}
        due = [
            slice_
            for key, slice_ in sorted(slices_at(context, snapshot).items())
            if window.partitions is None or key.partition in window.partitions
            if self._is_due(context.storage, slice_)
        ]
        slices = [slice_ for slice_ in due if slice_.key not in held]
        if not slices:
            return self._nothing("There is nothing to do.")
        left = [one for one in due if one.key in held]
        left = [one for one in left if not self._is_handed_back(context, held[one.key])]
        missing = tuple(sorted({one.partition for one in left}))
        may_go = is_cancellable(context.settings, self.service, plan_request.cancellable)
        extra = {CANCELLABLE_KEY: str(may_go).lower()}
        is_clustering = self.service is Service.CLUSTERING
        plan = (_clustering if is_clustering else _compaction)(slices, extra, missing)
        return Draft(
            content=plan,
            groups=frozenset(slice_.key for slice_ in slices),
            missing_partitions=missing,
        )

    def work(self, context: Context, attempt: Attempt, plan: bytes) -> Outcome:
        if self.service is Service.CLUSTERING:
            metadata, touched = _clustered(context, attempt, plan)
        else:
            metadata, touched = _compacted(context, attempt, plan, self.service)
        return Outcome(
            metadata=metadata,
            change=TableChange(instant=attempt.instant),
            touched=touched,
            outputs=outputs_of(metadata),
        )

    def _is_handed_back(self, context: Context, plan: Instant) -> bool:
        """Whether the next plan hears of what a plan holds, should it be cancelled.

        So it need not be named. Of a cancel in the past the plan after this one will not hear.
        """
        ledger = read_ledger(context.storage, plan.requested)
        return plan.action is self.service.action and ledger.ends_in is not LedgerEnd.CANCELLED

    def _is_due(self, storage: Storage, slice_: FileSlice) -> bool:
        match self.service:
            case Service.COMPACTION:
                return bool(slice_.log_files)
            case Service.LOG_COMPACTION:
                lines = read_slice(storage, slice_)
                gone = {instant for line in lines.values() for instant in line.instead_of}
                return sum(log.instant not in gone for log in slice_.log_files) > 1
            case Service.CLUSTERING:
                return bool(slice_.log_files) or not slice_.file_id.startswith(CLUSTERED)

    def _nothing(self, why: str) -> Refusal:
        return Refusal(service=self.service, reason=Reason.NOTHING_TO_DO, why=why)


LINE_SERVICES = {service: LineService(service) for service in Service}


def _compaction(
    slices: Iterable[FileSlice], extra: Mapping[str, str], missing: tuple[str, ...]
) -> bytes:
    operations = tuple(
        compaction.CompactionOperation(
            base_instant_time=slice_.base_instant,
            data_file_path=slice_.base_file.name if slice_.base_file else None,
            delta_file_paths=tuple(log.name for log in slice_.log_files),
            file_id=slice_.file_id,
            partition_path=slice_.partition,
        )
        for slice_ in slices
    )
    return compaction.encode_plan(
        compaction.CompactionPlan(
            operations=operations, extra_metadata=extra, missing_schedule_partitions=missing
        )
    )


def _clustering(
    slices: Iterable[FileSlice], extra: Mapping[str, str], missing: tuple[str, ...]
) -> bytes:
    groups = tuple(
        clustering.ClusteringGroup(
            slices=(
                clustering.ClusteringSlice(
                    data_file_path=slice_.base_file.name if slice_.base_file else None,
                    delta_file_paths=tuple(log.name for log in slice_.log_files),
                    file_id=slice_.file_id,
                    partition_path=slice_.partition,
                ),
            )
        )
        for slice_ in slices
    )
    plan = clustering.ClusteringPlan(
        input_groups=groups, extra_metadata=extra, missing_schedule_partitions=missing
    )
    return clustering.encode_plan(
        clustering.RequestedReplace(operation_type=Operation.CLUSTER, clustering_plan=plan)
    )


def _compacted(
    context: Context, attempt: Attempt, plan: bytes, service: Service
) -> tuple[CommitMetadata, frozenset[FileGroupId]]:
    stats, touched = [], set()
    is_logs = service is Service.LOG_COMPACTION
    for operation in compaction.decode_plan(plan, attempt.instant).operations:
        key = FileGroupId(operation.partition_path or "", operation.file_id or "")
        touched.add(key)
        base = None if is_logs else operation.data_file_path
        line = _folded(context.storage, key.partition, base, operation.delta_file_paths)
        if is_logs:
            stats.append(write_log(context.storage, attempt, key, line))
        else:
            stats.append(write_base(context.storage, attempt, key, Line(line.tokens)))
    metadata = CommitMetadata(
        partition_to_write_stats=by_partition(stats),
        compacted=not is_logs,
        operation_type=Operation.LOG_COMPACT if is_logs else Operation.COMPACT,
    )
    return metadata, frozenset(touched)


def _folded(storage: Storage, partition: str, base: str | None, logs: Iterable[str]) -> Line:
    """One line for many: the tokens of all, and the instants of the logs."""
    names = [*([base] if base else []), *logs]
    lines = {name: parse_line(storage.read(f"{partition}/{name}")) for name in names}
    instants = {name: name.rpartition(".log.")[0].rpartition("_")[2] for name in logs}
    gone = {instant for line in lines.values() for instant in line.instead_of}
    tokens = [
        token
        for name, line in lines.items()
        if instants.get(name) not in gone
        for token in line.tokens
    ]
    return Line(tuple(tokens), tuple({*instants.values(), *gone}))


def _clustered(
    context: Context, attempt: Attempt, plan: bytes
) -> tuple[CommitMetadata, frozenset[FileGroupId]]:
    decoded = clustering.decode_plan(plan, attempt.instant).clustering_plan
    assert decoded is not None
    stats, replaced = [], {}
    for number, group in enumerate(decoded.input_groups):
        tokens: list[str] = []
        for one in group.slices:
            partition = one.partition_path or ""
            logs = tuple(reversed(one.delta_file_paths))
            tokens += _folded(context.storage, partition, one.data_file_path, logs).tokens
            replaced[partition] = (*replaced.get(partition, ()), one.file_id or "")
        # The same in every attempt: two attempts make two files of one group, not two groups.
        key = FileGroupId(
            group.slices[0].partition_path or "", f"{CLUSTERED}{attempt.instant}-{number}"
        )
        stats.append(write_base(context.storage, attempt, key, Line(tuple(tokens))))
    metadata = ReplaceCommitMetadata(
        partition_to_write_stats=by_partition(stats),
        partition_to_replace_file_ids=replaced,
        operation_type=Operation.CLUSTER,
    )
    touched = {FileGroupId(partition, one) for partition, ids in replaced.items() for one in ids}
    return metadata, frozenset(touched)
