"""What a writer of the metadata table looks at first: both timelines, folders, and their files."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.metadata.validity import Validity
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import (
    METADATA_FOLDER,
    PROPERTIES_PATH,
    TableConfig,
    load_config,
)
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import Action
from lakewarden.engine.timeline.layouts import Layout, layout_of
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.view.file_names import DataFile, LogFile, parse_file_name
from lakewarden.engine.view.listing import HOODIE_FOLDER


@dataclass(frozen=True, slots=True)
class WriteState:
    """The metadata table at one moment; `storage` is rooted in it, `root` in its table."""

    root: Storage = field(repr=False)
    config: TableConfig = field(repr=False)
    storage: Storage = field(repr=False)
    layout: Layout
    timeline: Timeline = field(repr=False)
    data_timeline: Timeline = field(repr=False)

    def again(self) -> "WriteState":
        """The same as it is now, the table's properties included."""
        return load_write_state(self.root, load_config(self.root))

    def files(self, partition: str) -> tuple[DataFile, ...]:
        """The data files of a partition as they lie there now."""
        parsed = (
            parse_file_name(entry.name, entry.size_bytes)
            for entry in self.storage.list(partition).files
        )
        return tuple(file for file in parsed if file is not None)

    def partitions(self) -> tuple[str, ...]:
        """All partitions with a folder, whether the table's properties list them or not."""
        folders = (folder.rstrip("/") for folder in self.storage.list("").folders)
        return tuple(folder for folder in folders if folder != HOODIE_FOLDER)

    def deltacommit(self, instant: str) -> InstantFiles | None:
        """The files of the deltacommit of an instant of the data table, completed or not."""
        return self.begun(instant, Action.DELTA_COMMIT)

    def rollback(self, instant: str) -> InstantFiles | None:
        """The files of a rollback that was begun here."""
        return self.begun(instant, Action.ROLLBACK)

    @property
    def validity(self) -> Validity:
        """What counts of the metadata table."""
        return Validity.of(self.data_timeline, self.timeline)

    def uncertain(self) -> tuple[str, ...]:
        """The instants that are completed here, but still pending on the data table."""
        pending = self._pending()
        completed = self.timeline.active.completed()
        return tuple(one.requested for one in completed if one.requested in pending)

    def begun(self, requested: str, action: Action) -> InstantFiles | None:
        """The files of an instant that began as some action."""
        found = (
            group
            for group in self.timeline.active.files
            if group.instant.requested == requested and group.begun_as is action
        )
        return next(found, None)

    def _pending(self) -> frozenset[str]:
        return frozenset(one.requested for one in self.data_timeline.active.pending())


def load_write_state(storage: Storage, config: TableConfig) -> WriteState:
    """The metadata table of the table at a storage's root, as it is now."""
    own = storage.below(METADATA_FOLDER)
    layout = layout_of(parse_properties(own.read(PROPERTIES_PATH), PROPERTIES_PATH))
    return WriteState(
        storage,
        config,
        own,
        layout,
        Timeline.load(own, layout),
        Timeline.load(storage, config.layout),
    )


def written_by(instant: str, files: Sequence[DataFile]) -> tuple[LogFile, ...]:
    """The log files that a deltacommit made; no other one writes to them."""
    return tuple(file for file in files if isinstance(file, LogFile) and file.instant == instant)
