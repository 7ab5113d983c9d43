"""Table state: a table as one query sees it, read anew for each query and never changed after."""

from functools import cached_property

import pyarrow as pa

from lakewarden.engine.kernel.zones import Zone
from lakewarden.engine.metadata.files import MetadataListing
from lakewarden.engine.metadata.table import FILES, MetadataTable
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import TableConfig, load_config
from lakewarden.engine.table.schema import TableSchema, resolve_schema
from lakewarden.engine.table.schema_history import SchemaHistory, load_schema_history
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.view.listing import FileSource, StorageListing
from lakewarden.engine.view.slices import Completions, FileGroup, Visibility, file_groups
from lakewarden.engine.view.visibility import load_visibility


class TableState:
    """Configuration and timeline at one moment; everything else is derived when asked for."""

    def __init__(
        self,
        storage: Storage,
        config: TableConfig | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self.storage = storage
        self.config = config or load_config(storage)
        self.timeline = timeline or Timeline.load(storage, self.config.layout)

    @property
    def zone(self) -> Zone:
        """The zone in which the table's instants are written."""
        return self.timeline.active.layout.zone

    @cached_property
    def metadata(self) -> MetadataTable:
        return MetadataTable(self.storage, self.config, self.timeline)

    @cached_property
    def history(self) -> SchemaHistory:
        return load_schema_history(self.storage)

    def schema(self, as_of: str | None = None) -> TableSchema:
        return resolve_schema(self.timeline.active, self.config, as_of, self.timeline.archive)

    def reader_schema(self, as_of: str | None = None) -> pa.Schema:
        """The columns a reader shows: meta columns first, where the table fills them."""
        schema = self.schema(as_of)
        return schema.with_meta() if self.config.has_meta_fields else schema.columns

    def source(self, *, use_metadata: bool) -> FileSource:
        """Where files come from; a table without the `files` partition is listed."""
        if use_metadata and self.config.has_metadata(FILES):
            return MetadataListing(self.metadata.partition(FILES))
        return StorageListing(self.storage)

    def visibility(
        self, as_of: str | None = None, completions: Completions | None = None
    ) -> Visibility:
        return load_visibility(
            self.timeline.active,
            completions or self.timeline,
            names_decide=self.config.version < 8,
            as_of=as_of,
        )

    def file_groups(
        self, visibility: Visibility, partitions: tuple[str, ...] | None, *, use_metadata: bool
    ) -> tuple[FileGroup, ...]:
        """The live file groups of the given partitions, of all without any."""
        files = self.source(use_metadata=use_metadata).files(partitions)
        return tuple(
            group
            for partition in sorted(files)
            for group in file_groups(partition, files[partition], visibility)
        )
