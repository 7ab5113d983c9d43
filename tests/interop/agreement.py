"""Agreement: Java, we and the model say the same about a table."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from lakewarden import Table
from lakewarden.engine.table.config import TableType
from tests.canonical import canonical_rows, difference
from tests.interop.judges import JavaJudge
from tests.writing.model import ModelRow, contents_of

BEFORE_EVERYTHING = "20000101000000000"


class Agreement:
    """One table, read by Java and by us and held against what the model has."""

    def __init__(self, java: JavaJudge, path: Path) -> None:
        self._java = java
        self._path = path
        self._table = Table(str(path))

    def check(self, rows: Sequence[ModelRow], after: object) -> None:
        """All reads of the table as it is now agree, with its metadata table and without."""
        self.check_snapshot(rows, after)
        if self._table.config.metadata_partitions:
            listed = canonical_rows(self._table.read_arrow(use_metadata=False))
            assert not difference(self._java.read(self._path, metadata=False), listed), after
        if self._table.config.table_type is TableType.MERGE_ON_READ:
            self.check_base_files(after)

    def check_snapshot(self, rows: Sequence[ModelRow], after: object) -> None:
        """The snapshot is the model's for Java and for us."""
        found = self.check_own_snapshot(rows, after)
        assert not difference(self._java.read(self._path), canonical_rows(found)), after

    def check_own_snapshot(self, rows: Sequence[ModelRow], after: object) -> pa.Table:
        """The snapshot is the model's for us; Java is not asked."""
        found = self._table.read_arrow()
        assert contents_of(found) == list(rows), after
        assert contents_of(self._table.read_arrow(use_metadata=False)) == list(rows), after
        return found

    def check_base_files(self, after: object) -> None:
        """A read-optimised query returns the same rows to Java and to us."""
        found = canonical_rows(self._table.read_arrow(mode="read_optimized"))
        assert not difference(self._java.read(self._path, read_optimized=True), found), after

    def check_changes(self, after: object, since: str = BEFORE_EVERYTHING) -> None:
        """The changes of a window that ends now are the same to Java and to us."""
        found = canonical_rows(self._table.changes_arrow(since, self.now()))
        window = (since, self.now())
        assert not difference(self._java.read(self._path, window=window), found), (after, since)

    def check_truth(self) -> None:
        """Everything that the metadata table says is true."""
        assert self._java.validate(self._path) == {}

    def now(self) -> str:
        """When the last write completed."""
        times = [one.completed for one in self._table.timeline().instants if one.completed]
        return max(times, default=BEFORE_EVERYTHING)
