"""The model of a table: its rows as a plain dict, now and at each instant since it was made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tests.histories.tables import COLUMNS, TableKind

Row = Mapping[str, object]
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Version:
    """A row, and the number of the step that wrote it."""

    row: Row
    step: int


Rows = Mapping[Key, Version]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of the table's stream that is in the table: the step that wrote it, and its rows."""

    number: int
    step: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """A completed write: when it was, and the table as it was then."""

    step: int
    requested: str
    completed: str
    rows: Rows
    columns: tuple[str, ...]
    is_wide: bool
    # Keys of rows that came too late to count.
    late: frozenset[Key]


@dataclass(slots=True)
class Past:
    """All that has been of a table, and what is planned for it."""

    kind: TableKind
    rows: dict[Key, Version] = field(default_factory=dict)
    columns: tuple[str, ...] = COLUMNS
    # Whether the column of small numbers takes large ones by now.
    is_wide: bool = False
    moments: tuple[Moment, ...] = ()
    # All instants that have changed files; the rows as of each can be asked for.
    instants: frozenset[str] = frozenset()
    # By instant, the service.
    plans: Mapping[str, str] = field(default_factory=dict)
    savepoints: frozenset[str] = frozenset()
    has_metadata: bool = True
    # What takes old files or instants away has been at work.
    is_cleaned: bool = False
    late: frozenset[Key] = frozenset()
    # Record keys that were deleted whatever their ordering values, and are not there again.
    freed: frozenset[str] = frozenset()
    batches: tuple[Batch, ...] = ()

    def copy(self) -> "Past":
        """The same, to be changed; rows are never changed themselves."""
        return replace(self, rows=dict(self.rows))

    def key(self, row: Row) -> Key:
        return (str(row["p"]) if self.kind.is_partitioned else "", str(row["id"]))

    def keys_of(self, id_: str) -> list[Key]:
        """Where rows of a record key live."""
        return sorted(key for key in self.rows if key[1] == id_)

    def home(self, row: Row) -> Key | None:
        """The row that a row would be an update of."""
        key = self.key(row)
        if key in self.rows:
            return key
        found = self.keys_of(key[1]) if self.kind.is_global else []
        return found[0] if found else None

    def comes_late(self, row: Row) -> bool:
        """Whether the row that is there is newer by its ordering value."""
        home = self.home(row)
        if home is None or not self.kind.is_event_time:
            return False
        return int(str(self.rows[home].row["ts"])) > int(str(row["ts"]))

    def any_moves(self, rows: Iterable[Row]) -> bool:
        """Whether one of these rows leaves its partition."""
        return any(self.home(row) not in (None, self.key(row)) for row in rows)

    def put(self, row: Row, step: int) -> None:
        """Insert or update by the table's merge rules."""
        home = self.home(row)
        if home is None:
            self.rows[self.key(row)] = Version(row, step)
            return
        if self.comes_late(row):
            self.late |= {home, self.key(row)}
            self._fill(home, row)
            return
        old = self.rows.pop(home)
        self.rows[self.key(row)] = Version(self._merged(old.row, row), step)

    def set(self, row: Row, step: int) -> None:
        """Have a row stand as it is, whatever was there."""
        self.rows[self.key(row)] = Version(row, step)

    def remove(self, keys: Iterable[Key]) -> None:
        for key in list(keys):
            self.rows.pop(key, None)

    def drop_partitions(self, partitions: Iterable[str]) -> None:
        gone = set(partitions)
        self.remove([key for key in self.rows if key[0] in gone])

    def free(self, ids: Iterable[str]) -> None:
        """Delete keys wherever they are; rows that come later count, however old they are."""
        for id_ in ids:
            if self.keys_of(id_):
                self.freed |= {id_}
            self.remove(self.keys_of(id_))

    def wrote(self, step: int, requested: str, completed: str) -> None:
        """A write has completed, whose rows are those of now."""
        rows = dict(self.rows)
        snapshot = Moment(step, requested, completed, rows, self.columns, self.is_wide, self.late)
        self.moments = (*self.moments, snapshot)
        self.late = frozenset()
        self.freed -= {key[1] for key in self.rows}

    def as_of(self, instant: str) -> Moment | None:
        """The newest write that had started by then."""
        return next((one for one in reversed(self.moments) if one.requested <= instant), None)

    def image(self, row: Row, moment: Moment) -> Row:
        """A row of a moment in today's columns; one that was dropped since is another one now."""
        since = (one.columns for one in self.moments if one.step >= moment.step)
        same = frozenset(self.columns).intersection(*since)
        return {name: row.get(name) if name in same else None for name in self.columns}

    def back_to(self, snapshot: Moment | None) -> None:
        """Forget what came after a moment."""
        self.freed = frozenset()
        kept = 0 if snapshot is None else self.moments.index(snapshot) + 1
        self.moments = self.moments[:kept]
        last = -1 if snapshot is None else snapshot.step
        self.batches = tuple(one for one in self.batches if one.step <= last)
        self.rows = {} if snapshot is None else dict(snapshot.rows)
        self.columns = COLUMNS if snapshot is None else snapshot.columns
        self.is_wide = snapshot is not None and snapshot.is_wide

    def _fill(self, home: Key, late: Row) -> None:
        """Where a newer row leaves a value to older ones, even one that came late is better."""
        if self.kind.is_partial:
            there = self.rows[home]
            newer = {**dict.fromkeys(late), **there.row}
            self.rows[home] = replace(there, row=self._merged(late, newer))

    def _merged(self, old: Row, new: Row) -> Row:
        if not self.kind.is_partial:
            return new
        return {name: old.get(name) if value is None else value for name, value in new.items()}
