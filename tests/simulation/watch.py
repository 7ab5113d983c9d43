"""The watch: it sees every change of the table as it happens, and holds it against the promises.

It keeps its own account of the ledgers, the timeline and the rows, made from the files alone.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA, parse_file_name
from lakewarden.engine.file_groups.slices import FileGroupId, Visibility, file_groups
from lakewarden.engine.formats.instant_metadata import commit as commit_payload
from lakewarden.engine.formats.instant_metadata import replace as replace_payload
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata
from lakewarden.engine.formats.instant_metadata.replace import ReplaceCommitMetadata
from lakewarden.engine.storage.memory import MemoryStorage
from lakewarden.engine.storage.port import Entry
from lakewarden.engine.timeline.instants.instant import (
    COMPLETED_WRITES,
    FOLDER_KEEPER,
    Action,
    Instant,
    Layout,
    State,
)
from lakewarden.engine.timeline.ledger.entries import (
    Cancelled,
    Claim,
    Committed,
    Fenced,
    Withdrawn,
    decode_entry,
)
from lakewarden.engine.timeline.ledger.entries import Entry as LedgerEntry
from lakewarden.engine.timeline.ledger.ledger import LEDGER_FOLDER
from lakewarden.engine.transaction.commit import outputs_of
from lakewarden.engine.transaction.state.context import TABLE_SERVICES
from lakewarden.engine.transaction.state.plan_scope import INGESTION, PlanScope, plan_scope
from tests.simulation.one_line_files import Line, merged, parse_line, token
from tests.simulation.scheduler import Violation

Rows = Counter[str]

_line = cache(parse_line)


@cache
def _scope(action: Action, content: bytes) -> PlanScope:
    return plan_scope(action, content, "a plan")


@cache
def _metadata(action: Action, content: bytes) -> CommitMetadata:
    is_replace = action is Action.REPLACE_COMMIT
    return (replace_payload if is_replace else commit_payload).decode(content, "a commit")


@dataclass(frozen=True, slots=True)
class Promises:
    """What holds in a run besides what always does."""

    # Rests on a lock that nobody loses: times in order, and nothing between different instants.
    has_lock: bool = True
    # The data files are lines, so that rows can be counted at each step.
    has_lines: bool = True

    @property
    def has_rows(self) -> bool:
        return self.has_lock and self.has_lines


@dataclass
class Watch:
    """See above; an instance is called after each change."""

    storage: MemoryStorage
    layout: Layout
    promises: Promises = field(default_factory=Promises)

    def __post_init__(self) -> None:
        self.ledgers: dict[str, list[LedgerEntry]] = {}
        self.completed: dict[str, Instant] = {}
        self.pending: dict[str, Action] = {}
        self.plans: dict[str, PlanScope] = {}
        self.acknowledged_cancels: set[str] = set()
        self._metadata: dict[str, CommitMetadata] = {}
        self._named: dict[str, str] = {}
        self._files: set[str] = set()
        self._timeline: dict[str, Instant] = {}
        self._contents: dict[str, bytes] = {}
        self._newest = ""
        self.looks = 0
        # What is there before anybody acts is taken as it is.
        promises, self.promises = self.promises, Promises(has_lock=False)
        for entry in sorted(self.storage.walk(""), key=lambda entry: _age(entry.path)):
            self("put" if _is_data(entry.path) else "create_exclusive", entry.path)
        self.promises = promises

    def __call__(self, operation: str, path: str) -> None:
        """Look at a path that has changed."""
        self.looks += 1
        if path.startswith(LEDGER_FOLDER):
            self._ledger_changed(operation, path)
        elif path.startswith(f"{self.layout.folder}/"):
            self._timeline_changed(operation, path)
        elif _is_data(path):
            self._file_changed(operation, path)
        elif operation == "delete_folder" and not path.startswith(".hoodie/"):
            raise Violation(f"The folder {path} was deleted.")

    # What those who act were told.

    def told_cancelled(self, instant: str) -> None:
        if self.end(instant) is Committed:
            raise Violation(f"A cancel of {instant} was acknowledged, and it has committed.")
        self.acknowledged_cancels.add(instant)

    def told_committed(self, instant: str) -> None:
        if self.end(instant) is not Committed:
            raise Violation(f"{instant} was said to have committed, and it has not.")

    def end(self, instant: str) -> type[LedgerEntry] | None:
        entries = self.ledgers.get(instant, [])
        last = type(entries[-1]) if entries else None
        return None if last is Claim else last

    # What happens to the files.

    def _ledger_changed(self, operation: str, path: str) -> None:
        instant, _, name = path.removeprefix(f"{LEDGER_FOLDER}/").partition("/")
        number = int(name.removesuffix(".json"))
        entries = self.ledgers.setdefault(instant, [])
        content = self.storage.read_if_present(path)
        if content is None:
            if number <= len(entries):
                raise Violation(f"Entry {number} of the ledger of {instant} was removed.")
            return
        entry = decode_entry(content, path)
        if number <= len(entries):
            if entries[number - 1] != entry:
                raise Violation(f"Entry {number} of the ledger of {instant} was overwritten.")
            return
        if number != len(entries) + 1:
            raise Violation(f"The ledger of {instant} has no entry {number - 1}.")
        self._assert_may_follow(instant, entries, entry)
        entries.append(entry)

    def _assert_may_follow(
        self, instant: str, entries: list[LedgerEntry], entry: LedgerEntry
    ) -> None:
        deciding = [one for one in entries if not isinstance(one, Fenced)]
        last = deciding[-1] if deciding else None
        if isinstance(last, Cancelled | Withdrawn):
            raise Violation(f"The ledger of {instant} goes on behind its end.")
        if isinstance(last, Committed) and not isinstance(entry, Withdrawn):
            raise Violation(f"The ledger of {instant} goes on behind its end.")
        if isinstance(entry, Committed):
            if not isinstance(last, Claim) or last.attempt != entry.attempt:
                raise Violation(f"Attempt {entry.attempt} at {instant} had not the last claim.")
            self._assert_may_commit(instant, entry)
        if isinstance(entry, Cancelled) and instant in self.plans:
            scope = self.plans[instant]
            if (entry.partitions, entry.missing_partitions) != (
                scope.partitions,
                scope.missing_partitions,
            ):
                raise Violation(f"The cancel of {instant} hands back {entry.partitions} only.")

    def _assert_may_commit(self, instant: str, entry: Committed) -> None:
        if instant in self.acknowledged_cancels:
            raise Violation(f"{instant} commits, though its cancel was acknowledged.")
        if entry.completion_time <= instant:
            raise Violation(f"{instant} completes before it began.")
        if self.promises.has_lock and entry.completion_time <= self._newest:
            raise Violation(f"{instant} completes at {entry.completion_time}, in the past.")
        self._newest = max(self._newest, entry.completion_time)
        if entry.action.completed_as not in COMPLETED_WRITES:
            return
        metadata = _metadata(entry.action.completed_as, entry.content)
        for path, size in outputs_of(metadata).items():
            there = self.storage.stat(path)
            if there is None or there.size_bytes != size:
                raise Violation(f"{instant} commits without its output {path}.")
            self._named[path] = instant

    def _timeline_changed(self, operation: str, path: str) -> None:
        content = self.storage.read_if_present(path)
        if content is None:
            if (gone := self._timeline.pop(path, None)) is not None:
                self._left_timeline(gone)
            return
        if path in self._timeline:
            if self._contents[path] != content:
                raise Violation(f"{path} was overwritten.")
            return
        instant = self.layout.parse(Entry(path, len(content), 0))
        if instant is None:
            return
        self._contents[path] = content
        self._timeline[path] = instant
        if instant.is_completed:
            self._has_completed(instant, content)
        elif instant.state is State.REQUESTED:
            self._was_requested(instant, content)

    def _was_requested(self, instant: Instant, content: bytes) -> None:
        requested = instant.requested
        if self.promises.has_lock and requested <= self._newest:
            raise Violation(f"{instant} is not newer than {self._newest}.")
        self._newest = max(self._newest, requested)
        self.pending[requested] = instant.action
        if instant.action in TABLE_SERVICES:
            scope = _scope(instant.action, content)
            for other, held in self.plans.items():
                # A plan that was cancelled holds nothing any more.
                holds = self.promises.has_lock and self.end(other) is not Cancelled
                if holds and scope.groups & held.groups:
                    raise Violation(f"The plans {other} and {requested} share file groups.")
            self.plans[requested] = scope
            self._assert_rows()

    def _left_timeline(self, gone: Instant) -> None:
        if gone.is_completed:
            raise Violation(f"{gone} vanished from the timeline.")
        if gone.state is State.REQUESTED:
            if gone.requested in self.completed or self.end(gone.requested) is not Cancelled:
                raise Violation(f"{gone} vanished, and its ledger does not end in a cancel.")
            self.pending.pop(gone.requested, None)
            if self.plans.pop(gone.requested, None) is not None:
                self._assert_rows()

    def _has_completed(self, instant: Instant, content: bytes) -> None:
        requested = instant.requested
        entries = self.ledgers.get(requested, [])
        last = entries[-1] if entries else None
        if not isinstance(last, Committed):
            raise Violation(f"{instant} completes, and its ledger does not end in a commit.")
        if (last.completion_time, last.content) != (instant.completed, content):
            raise Violation(f"{instant} is not what its ledger has committed.")
        if requested in self.acknowledged_cancels:
            raise Violation(f"{instant} completes, though its cancel was acknowledged.")
        if requested in self.completed:
            raise Violation(f"{instant} completes twice.")
        newest = max((one.completed or "" for one in self.completed.values()), default="")
        if self.promises.has_lock and newest >= (instant.completed or ""):
            raise Violation(f"{instant} completes behind {newest}.")
        self.completed[requested] = instant
        self.pending.pop(requested, None)
        self.plans.pop(requested, None)
        if instant.action in COMPLETED_WRITES:
            self._metadata[requested] = _metadata(instant.action, content)
            self._assert_rows()

    def _file_changed(self, operation: str, path: str) -> None:
        is_there = self.storage.stat(path) is not None
        if not is_there:
            if path in self._named and path in self._files:
                raise Violation(f"{path}, which {self._named[path]} names, was deleted.")
            self._files.discard(path)
        elif path in self._files and operation == "close":
            if path in self._named:
                raise Violation(f"{path}, which {self._named[path]} names, was written again.")
        else:
            self._files.add(path)

    # What a reader sees.

    def expected_rows(self) -> Rows:
        """One token for each file group that a completed write has written to."""
        rows: Rows = Counter()
        for requested, metadata in self._metadata.items():
            if _begun_as(self.ledgers[requested]) in INGESTION:
                for stats in metadata.partition_to_write_stats.values():
                    rows.update(token(requested, stat.file_id) for stat in stats)
        return rows

    def rows_in(self, paths: Iterable[str]) -> Rows:
        """The tokens that are seen in some files by the rules of slices."""
        replaced = {
            FileGroupId(partition, file_id): requested
            for requested, metadata in self._metadata.items()
            if isinstance(metadata, ReplaceCommitMetadata)
            for partition, file_ids in metadata.partition_to_replace_file_ids.items()
            for file_id in file_ids
        }
        compactions = {
            key: requested
            for requested, scope in self.plans.items()
            if self.pending.get(requested) is Action.COMPACTION
            for key in scope.groups
        }
        visibility = Visibility(self, replaced=replaced, pending_compactions=compactions)
        by_partition: dict[str, list[str]] = {}
        for path in paths:
            partition, _, name = path.rpartition("/")
            by_partition.setdefault(partition, []).append(name)
        rows: Rows = Counter()
        for partition, names in by_partition.items():
            files = [file for name in names if (file := parse_file_name(name, 1)) is not None]
            for group in file_groups(partition, files, visibility):
                rows.update(merged(group.latest_merged(), self._lines(partition, names)))
        return rows

    def completion_time(self, requested: str) -> str | None:
        instant = self.completed.get(requested)
        return None if instant is None else instant.completed

    def is_completed(self, requested: str) -> bool:
        return requested in self.completed

    def _lines(self, partition: str, names: Iterable[str]) -> dict[str, Line]:
        return {name: _line(self.storage.read(f"{partition}/{name}")) for name in names}

    def _assert_rows(self) -> None:
        """Each row of a completed write is seen, and at one place only."""
        if not self.promises.has_rows:
            return
        named = [path for path, instant in self._named.items() if instant in self._metadata]
        self._assert_same(self.rows_in(named))

    def _assert_same(self, seen: Rows) -> None:
        expected = self.expected_rows()
        if seen != expected:
            lost, twice = expected - seen, seen - expected
            raise Violation(f"Rows are lost: {dict(lost)}, or seen too often: {dict(twice)}.")

    # What has to hold when all is done.

    def assert_at_rest(self) -> None:
        """Nothing is pending, and there is no file that no completed instant names."""
        pending = [one for one in self._timeline.values() if one.requested not in self.completed]
        if pending:
            raise Violation(f"{', '.join(map(str, pending))} did not end.")
        named = {path for path, instant in self._named.items() if instant in self.completed}
        if self._files != named:
            raise Violation(f"Files too many: {sorted(self._files - named)}.")
        left = [
            entry.path
            for entry in self.storage.walk(".hoodie/.temp")
            if entry.path.split("/")[2] not in {*self.completed, FOLDER_KEEPER}
        ]
        if left:
            raise Violation(f"Markers are left: {left}.")
        if self.promises.has_rows:
            self._assert_same(self.rows_in(self._files))


def _begun_as(entries: list[LedgerEntry]) -> Action:
    return entries[0].action


def _is_data(path: str) -> bool:
    return not path.startswith(".hoodie") and not path.endswith(PARTITION_METADATA)


def _age(path: str) -> tuple[bool, bool, str]:
    """Data first, then the timeline in its order, with each ledger before its instant."""
    if _is_data(path):
        return False, False, path
    is_timeline = not path.startswith(LEDGER_FOLDER)
    return True, is_timeline, path
