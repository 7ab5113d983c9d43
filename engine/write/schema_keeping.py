"""Keeping the schema history: what a commit of an evolved table says of it, and leaves behind."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.alteration import Alteration
from lakewarden.engine.table.evolved_history import (
    LATEST_SCHEMA_KEY,
    CarriedHistory,
    carried_history,
)
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.table.schema_history import COMPLETED_SUFFIX, SCHEMA_FOLDER
from lakewarden.engine.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class HistoryToKeep:
    """The history that a write carries on; nothing for a table that never evolved by it."""

    carried: CarriedHistory | None = None
    # The file that it was read from.
    source: str = ""

    @property
    def said(self) -> Mapping[str, str]:
        """What the commit's metadata tells of it."""
        return {} if self.carried is None else {LATEST_SCHEMA_KEY: self.carried.latest}

    def keep(self, storage: Storage, timeline: Timeline, instant: str) -> None:
        """Leave it for the writes to come; it counts once the instant completes.

        Java takes it from an active instant, so that every commit leaves one. Those of archived
        instants go, but for the one that was read: this commit may still fail.
        """
        if self.carried is None:
            return
        start = timeline.first_active or ""
        for entry in storage.list(SCHEMA_FOLDER).files:
            if entry.name.partition(".")[0].partition("_")[0] < start and entry.path != self.source:
                storage.delete(entry.path)
        # When it was completed is asked by no one; a second attempt puts it into the same place.
        path = f"{SCHEMA_FOLDER}/{instant}_{instant}{COMPLETED_SUFFIX}"
        storage.put(path, self.carried.content)


def history_to_keep(
    state: Snapshot,
    before: TableSchema,
    after: TableSchema,
    instant: str,
    alteration: Alteration | None = None,
) -> HistoryToKeep:
    """What a write carries on; a service knows only the versions until its instant.

    A change of the columns that Java has no words for is refused.
    """
    history = state.history.until(instant)
    if alteration is not None:
        return HistoryToKeep(alteration.history(history, before, instant), history.path)
    carried = carried_history(history, before.columns, after.columns, instant)
    return HistoryToKeep(carried, history.path)
