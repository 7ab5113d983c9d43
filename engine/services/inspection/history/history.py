"""History: what instants have to say, newest first, from the timeline and by range the archive."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.shown import Row, ShownRows, row_of
from lakewarden.engine.kernel.zones import Zone
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.timeline.archived.rows import ArchivedInstant
from lakewarden.engine.timeline.instants.instant import Action, Instant, State, epoch_ms
from lakewarden.engine.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Requested times from one to another, both included; without an end there is no bound."""

    since: str | None = None
    until: str | None = None

    def holds(self, time: str) -> bool:
        after = self.since is None or time >= self.since
        return after and (self.until is None or time <= self.until)


EVER = TimeSpan()


@dataclass(frozen=True, slots=True)
class Recorded:
    """An instant in its newest state with a content: its metadata, or the plan it began with."""

    instant: Instant
    content: bytes
    path: str
    is_archived: bool = False


class History(ShownRows):
    """The instants of a table at one moment; it shows those that are not archived."""

    def __init__(self, storage: Storage, timeline: Timeline) -> None:
        self.storage = storage
        self.timeline = timeline
        self._layout = timeline.active.layout

    def _shown_rows(self) -> Sequence[Row]:
        return [row_of(instant) for instant in reversed(self.timeline.active.instants)]

    @property
    def zone(self) -> Zone:
        """The zone in which the table's instants are written."""
        return self._layout.zone

    def completed(
        self, actions: Collection[Action], span: TimeSpan = EVER, *, archived: bool = False
    ) -> Iterator[Recorded]:
        """Completed instants of some actions with their metadata, newest first."""
        active = (
            self._recorded(instant, instant)
            for instant in reversed(self.timeline.active.completed(actions))
            if span.holds(instant.requested)
        )
        return _newest_first(active, self.archived(actions, span)) if archived else active

    def archived(self, actions: Collection[Action], span: TimeSpan = EVER) -> Iterator[Recorded]:
        """Instants that have left the active timeline, with their metadata, newest first."""
        for row in self._rows(actions, span):
            yield self._of_row(row, row.metadata or b"")

    def planned(
        self, actions: Collection[Action], span: TimeSpan = EVER, *, archived: bool = False
    ) -> Iterator[Recorded]:
        """Instants that began as some actions, with the plan in their request, newest first."""
        active = (
            self._recorded(files.instant, files.requested.instant)
            for files in reversed(self.timeline.active.files)
            if files.started_as in actions
            and files.requested is not None
            and span.holds(files.instant.requested)
        )
        return _newest_first(active, self._archived_plans(actions, span)) if archived else active

    def instants(self, span: TimeSpan, *, archived: bool) -> Iterator[tuple[Instant, bool]]:
        """Instants newest first, each with whether it is archived; nothing is read of them."""
        active = self.timeline.active
        found = {one.key: (one, False) for one in active.instants if span.holds(one.requested)}
        if archived:
            for one in self.timeline.archive.instants(span.since, span.until):
                if active.files_of(one) is None:
                    found[one.key] = (one, True)
        return (found[key] for key in sorted(found, reverse=True))

    def named(self, time: str, actions: Collection[Action]) -> Recorded:
        """The completed instant of that time with its metadata; `InvalidRequest` without one."""
        found = next(self.completed(actions, TimeSpan(time, time), archived=True), None)
        if found is None:
            words = ", ".join(sorted(action.value for action in actions))
            raise InvalidRequest(
                "unknown_instant",
                what=f"The table has no completed instant {time}.",
                why=f"Neither the active timeline nor the archive has it as {words}.",
                now="CALL show_timeline(showArchived => true) lists all.",
                instant=time,
            )
        return found

    def epoch_ms(self, time: str | None) -> int | None:
        """The moment of a time of this timeline; None where it is no date."""
        return None if time is None else epoch_ms(time, self._layout.zone)

    def _rows(self, actions: Collection[Action], span: TimeSpan) -> Iterator[ArchivedInstant]:
        for row in self.timeline.archive.rows(actions, span.since, span.until):
            if self.timeline.active.files_of(row.instant) is None:
                yield row

    def _archived_plans(self, actions: Collection[Action], span: TimeSpan) -> Iterator[Recorded]:
        for row in self._rows({action.completed_as for action in actions}, span):
            if row.plan is not None:
                yield self._of_row(row, row.plan)

    def _recorded(self, instant: Instant, file: Instant) -> Recorded:
        active = self.timeline.active
        return Recorded(instant, active.read(file), active.path(file))

    def _of_row(self, row: ArchivedInstant, content: bytes) -> Recorded:
        name = self._layout.file_name(row.instant)
        return Recorded(row.instant, content, f"{self._layout.history_folder} ({name})", True)


def state_word(instant: Instant) -> str:
    """The state of an instant as Hudi spells it."""
    return State(instant.state).name


def _newest_first(*parts: Iterator[Recorded]) -> Iterator[Recorded]:
    return merge(*parts, key=lambda one: one.instant.key, reverse=True)
