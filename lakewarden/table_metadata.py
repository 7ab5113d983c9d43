"""What a table keeps about itself: its metadata table and its indexes."""

from collections.abc import Sequence

from lakewarden.engine.read.table_state import TableState
from lakewarden.engine.services.inspection.column_statistics import (
    FileColumn,
    Overlap,
    file_statistics,
    overlaps,
)
from lakewarden.engine.services.inspection.indexes import IndexView, index_views
from lakewarden.engine.services.inspection.metadata_table import (
    ComparedFile,
    MetadataSizes,
    compare_files,
    metadata_listing,
    metadata_sizes,
)
from lakewarden.engine.view.listing import FileSource


class TableMetadata:
    """The metadata table of a table; `Table` says which."""

    def _state(self) -> TableState:
        raise NotImplementedError

    def index_states(self) -> tuple[IndexView, ...]:
        """The indexes, those included that are only planned, and how far each is."""
        return index_views(self._state())

    def metadata_listing(self) -> FileSource:
        """The partitions and files that the metadata table lists."""
        return metadata_listing(self._state())

    def metadata_sizes(self) -> tuple[MetadataSizes, ...]:
        """What each partition of the metadata table takes."""
        return metadata_sizes(self._state())

    def compared_files(self) -> tuple[ComparedFile, ...]:
        """The files that lie on the storage beside those that the metadata table lists."""
        return tuple(compare_files(self._state()))

    def column_statistics(
        self, partitions: Sequence[str] = (), columns: Sequence[str] = ()
    ) -> tuple[FileColumn, ...]:
        """The statistics of the files that a read sees."""
        return tuple(file_statistics(self._state(), partitions, columns))

    def column_overlaps(
        self, partitions: Sequence[str] = (), columns: Sequence[str] = ()
    ) -> tuple[Overlap, ...]:
        """How far the base files of each partition overlap in each column."""
        return tuple(overlaps(self._state(), partitions, columns))
