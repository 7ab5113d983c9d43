"""Checks of a table against its model: after each step some, and at the end all there are."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from random import Random

import pyarrow as pa

from lakewarden import Table
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.metadata.reading.key_cache import KeyCache
from lakewarden.engine.services.inspection.validation.finding import CheckVerdict
from lakewarden.engine.storage.memory import fresh_memory_storage
from tests.all_kinds import differences
from tests.histories.captured import assert_changes
from tests.histories.changes import condition
from tests.histories.kept import Kept
from tests.histories.played_table import KNOWN_BYTES, PlayedTable
from tests.histories.rows import IDS
from tests.histories.seen import Difference, assert_same, plain, rows_of
from tests.histories.table_model import Key, Moment, Row
from tests.histories.tables import COLUMNS
from tests.known_keys import said_of_keys

# Of what is asked of the past after a step, and at the end.
ASKED, ASKED_AT_END = 1, 12


class Checks:
    """What is asked of a table; refusals of the past are counted by their codes."""

    def __init__(self, world: PlayedTable, without: frozenset[str] = frozenset()) -> None:
        self._world = world
        self._without = without
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.answered: Counter[str] = Counter()
        # How often the table had been changed when it was last found right.
        self._checked = -1

    def after_step(self, chance: Random) -> None:
        """What must be right at any time, and a sample of what is dear.

        After a step that has changed no file rows and indexes are those that were checked before.
        """
        table, changes = self._world.table(), self._world.storage.changes
        is_changed = changes != self._checked
        if is_changed:
            self.assert_rows(table)
            self.assert_indexes(table)
            self.assert_known_keys()
        if chance.random() < 0.5:
            self.assert_past(table, chance, ASKED)
        if chance.random() < 0.4:
            self.assert_windows(table, chance, ASKED)
            self.assert_captured(table, chance, ASKED)
        if chance.random() < 0.5:
            self.assert_lookup(table, chance.sample(IDS, 2))
        if chance.random() < 0.4:
            self.assert_filtered(table, chance)
        if chance.random() < 0.3:
            self.assert_read_optimised(table)
        if chance.random() < 0.15:
            self.assert_valid(table)
        self._checked = self._world.storage.changes
        if self._world.kind.is_mor and chance.random() < 0.1:
            self.assert_lost_bytes_are_missed(chance)

    def at_end(self, chance: Random) -> None:
        """All of it."""
        table = self._world.table()
        self.assert_rows(table)
        self.assert_past(table, chance, ASKED_AT_END)
        self.assert_windows(table, chance, ASKED_AT_END)
        self.assert_captured(table, chance, ASKED_AT_END)
        self.assert_lookup(table, IDS)
        self.assert_filtered(table, chance)
        self.assert_read_optimised(table)
        self.assert_valid(table)
        self.assert_indexes(table)

    def assert_rows(self, table: Table) -> None:
        """A snapshot is the model's rows, whoever lists the files."""
        past = self._world.past
        expected = plain(past.rows, past.columns)
        for use_metadata in (True, False) if past.has_metadata else (False,):
            read = table.read_arrow(self._shown(past.columns), use_metadata=use_metadata)
            seen = self._rows(read, "snapshot")
            assert_same(seen, expected, "snapshot", f"{use_metadata=}")

    def assert_past(self, table: Table, chance: Random, count: int) -> None:
        """Time travel gives the rows of then, or is refused by name."""
        past = self._world.past
        points = sorted({one.requested for one in past.moments} | past.instants)
        if "as of" in self._without:
            return
        chosen = chance.sample(points, min(count, len(points)))
        chosen += chance.sample(sorted(past.savepoints), min(1, len(past.savepoints)))
        for point in chosen:
            snapshot = past.as_of(point)
            columns = COLUMNS if snapshot is None else snapshot.columns
            expected = {} if snapshot is None else plain(snapshot.rows, columns)
            use_metadata = chance.random() < 0.5
            ask = partial(
                table.read_arrow, self._shown(columns), as_of=point, use_metadata=use_metadata
            )
            # What a savepoint holds can be asked for whatever cleans have done.
            kept = _always if point in past.savepoints else partial(Kept.has_moment, point=point)
            seen = self._answer("as_of", ask, kept)
            if seen is not None:
                got = self._rows(seen, "as of")
                assert_same(got, expected, "as of", f"{point}, {use_metadata=}")

    def assert_windows(self, table: Table, chance: Random, count: int) -> None:
        """Changes are what the commits of a window wrote."""
        moments = self._world.past.moments
        for first, last, since, until in self._windows(chance, count):
            ask = partial(table.changes_arrow, since, until, columns=self._shown(COLUMNS))
            kept = partial(Kept.has_window, since=since, until=until)
            seen = self._answer("changes", ask, kept)
            if seen is not None:
                self._assert_window(seen, moments[first + 1 : last + 1], f"({since}, {until}]")

    def assert_captured(self, table: Table, chance: Random, count: int) -> None:
        """Change data is what each commit of a window did to each row."""
        moments = self._world.past.moments
        for first, last, since, until in self._windows(chance, count):
            ask = partial(table.changes_arrow, since, until, mode="cdc")
            seen = self._answer("cdc", ask, partial(Kept.has_changes_since, since=since))
            if seen is not None:
                assert_changes(seen, moments, range(first + 1, last + 1), self._world.past)

    def _windows(self, chance: Random, count: int) -> Iterator[tuple[int, int, str, str]]:
        """Windows drawn from the past: the moments before and at its end, and their times."""
        moments = self._world.past.moments
        # Without meta columns nothing tells which commit a row is of.
        are_told = "changes" not in self._without and not self._world.kind.is_virtual
        for _ in range(count if moments and are_told else 0):
            first = chance.randrange(-1, len(moments))
            last = chance.randrange(max(first, 0), len(moments))
            yield (
                first,
                last,
                "0" if first < 0 else moments[first].completed,
                moments[last].completed,
            )

    def assert_lookup(self, table: Table, ids: tuple[str, ...] | list[str]) -> None:
        """A lookup finds all rows of its keys, and no others."""
        past = self._world.past
        seen = self._rows(
            table.lookup([past.kind.record_key(id_) for id_ in ids], self._shown(past.columns)),
            "lookup",
        )
        rows = {key: version for key, version in past.rows.items() if key[1] in ids}
        assert_same(seen, plain(rows, past.columns), "lookup", f"of {list(ids)}")
        filter_ = past.kind.key_filter(ids)
        if filter_ is not None:
            found = self._rows(table.read_arrow(self._shown(past.columns), filter_), "key filter")
            assert_same(found, plain(rows, past.columns), "key filter", f"of {list(ids)}")

    def assert_read_optimised(self, table: Table) -> None:
        """Base files alone give rows as they have been at some time.

        With logs a key that was deleted and came back elsewhere may be there twice.
        """
        world, columns = self._world, self._world.past.columns
        seen = table.read_arrow(self._shown(columns), mode="read_optimized")
        if not world.kind.is_mor:
            got = self._rows(seen, "read-optimised")
            assert_same(got, plain(world.past.rows, columns), "read-optimised")
            return
        past = world.past
        known = [past.image(one.row, at) for at in past.moments for one in at.rows.values()]
        for row in world.kind.read(seen):
            if row not in known:
                raise Difference("read-optimised: invented", f"read-optimised: invented {row}")

    def assert_lost_bytes_are_missed(self, chance: Random) -> None:
        """A log that was cut is damage to whoever reads it, in a copy of the table."""
        world = self._world
        logs = [
            f"{one.partition}/{log.name}".lstrip("/")
            for one in world.table().file_slices()
            for log in one.log_files
        ]
        if not logs:
            return
        cut = chance.choice(logs)
        copy = fresh_memory_storage(clock=world.clock)
        for entry in world.storage.walk(""):
            copy.put(entry.path, b"" if entry.path == cut else world.storage.read(entry.path))
        with suppress(CorruptTable):
            world.table(storage=copy).read_arrow(use_metadata=chance.random() < 0.5)
            raise Difference("lost bytes", f"{cut} is empty, and a read does not miss it.")

    def assert_valid(self, table: Table) -> None:
        """What the table keeps about itself is true."""
        for result in table.validate():
            if result.finding.verdict is CheckVerdict.FAILED:
                finding = result.finding
                raise Difference(
                    f"validate: {result.check}",
                    f"{result.check}: {finding.object}: {finding.detail}",
                )

    def assert_indexes(self, table: Table) -> None:
        """Each index is what its rows and files make it."""
        for found in differences(table) if self._world.past.has_metadata else ():
            raise Difference(f"index: {found.partition(':')[0]}", found)

    def assert_known_keys(self) -> None:
        """A process that keeps the record index knows what it says now, whatever has happened.

        So does one that starts with what that one has saved at some time.
        """
        world = self._world
        keys = [world.past.kind.record_key(id_) for id_ in IDS]
        started = KeyCache()
        started.within(KNOWN_BYTES, world.snapshots)
        for cache in (world.known_keys, started):
            entries, known = said_of_keys(world.storage, cache, keys)
            if known != entries:
                differ = set(known) ^ set(entries)
                raise Difference("key cache", f"{differ} are said by one of two.")
        world.known_keys.tidy()

    def assert_filtered(self, table: Table, chance: Random) -> None:
        """A filter finds the rows that fulfil it, whatever files were passed over."""
        past = self._world.past
        filter_, keeps = condition(past.kind, chance)
        use_metadata = chance.random() < 0.7
        columns = self._shown(past.columns)
        seen = self._rows(table.read_arrow(columns, filter_, use_metadata=use_metadata), "filter")
        rows = {key: version for key, version in past.rows.items() if keeps(version.row)}
        assert_same(seen, plain(rows, past.columns), "filter", f"{filter_}, {use_metadata=}")

    def _shown(self, columns: tuple[str, ...]) -> list[str]:
        return self._world.kind.shown(columns)

    def _rows(self, table: pa.Table, what: str) -> dict[Key, Row]:
        return rows_of(table, self._world.kind, what)

    def _answer(
        self, what: str, ask: Callable[[], pa.Table], is_kept: Callable[[Kept], bool]
    ) -> pa.Table | None:
        """What the table says of its past: all that its retention admits."""
        try:
            answer = ask()
        except InvalidRequest as refusal:
            kept = Kept.of(self._world.table())
            if not self._world.past.is_cleaned or is_kept(kept):
                text = f"{what} is refused, and not gone: {refusal} {kept}"
                raise Difference(f"{what}: refused", text) from None
            self.refusals[what, refusal.code] += 1
            return None
        self.answered[what] += 1
        return answer

    def _assert_window(self, seen: pa.Table, window: tuple[Moment, ...], what: str) -> None:
        steps = {snapshot.step for snapshot in window}
        rows = window[-1].rows if window else {}
        written = {key: version for key, version in rows.items() if version.step in steps}
        got, expected = self._rows(seen, "changes"), plain(written, COLUMNS)
        if self._world.kind.is_mor:
            # A row that came too late is written to a log all the same.
            late = {key for snapshot in window for key in snapshot.late}
            got = {key: row for key, row in got.items() if key in expected or key not in late}
        if self._world.kind.is_partial:
            # Values that a row leaves to older ones are not of the window.
            got = {key: {} for key in got}
            expected = {key: {} for key in expected}
        assert_same(got, expected, "changes", f"of {what}, steps {sorted(steps)}")


def _always(kept: Kept) -> bool:
    return True
