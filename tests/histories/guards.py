"""Guards removed, one at a time: `python -m tests.histories.guards` plays until the net is red.

A guard is a function of the engine that keeps a promise. It is exchanged for one that does
nothing, which happens here and in no test that says whether the table is right.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module

import numpy as np
import pyarrow as pa

from lakewarden.engine.metadata.encoding.records import NO_ENTRIES
from lakewarden.engine.write.replaced_rows import ReplacedRows
from lakewarden.engine.write.rows.evolve import evolved
from tests.histories.history import History, play
from tests.histories.remembered import remembering
from tests.side_by_side.race import Race, RaceKind
from tests.simulation.locks import LockKind
from tests.simulation.scheduler import Chances, Violation

HISTORIES, RACES = 300, 600
RESTLESS = Chances(kill=0, pause=0.08, fault=0, pauses_max=40)
# Whoever reads takes a long time between its look at the timeline and its look at the files.
PONDERING = Chances(
    kill=0, pause=0, fault=0, pauses_max=40, pause_steps=(600, 1500), ponders="reader"
)


@dataclass(frozen=True, slots=True)
class Guard:
    """A function by its place, and what stands in for it."""

    name: str
    # Where it is used, as `module:function` or `module:Class.method`; looked up just there.
    places: tuple[str, ...]
    instead: object
    # The net that has to find its absence: histories, or races under such a lock.
    lock: LockKind | None = None
    # Operations that are played more often, or deeds that take no part in races.
    favoured: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    # What befalls processes in its races.
    chances: Chances = field(default_factory=Chances)

    @contextmanager
    def removed(self) -> Iterator[None]:
        """The engine without it."""
        found = [_owner(place) for place in self.places]
        own = [vars(owner)[name] for owner, name in found]
        for owner, name in found:
            setattr(owner, name, self.instead)
        try:
            yield
        finally:
            for (owner, name), kept in zip(found, own, strict=True):
                setattr(owner, name, kept)

    @property
    def replay(self) -> str:
        """What plays it again."""
        return f"python -m tests.histories.guards '{self.name}'"


def _owner(place: str) -> tuple[object, str]:
    """The module or class that a place names, and the name in it."""
    module, _, path = place.partition(":")
    owner: object = import_module(module)
    *classes, name = path.split(".")
    for one in classes:
        owner = getattr(owner, one)
    return owner, name


def _answering(answer: object) -> Callable[..., object]:
    """A function that says always the same."""
    return lambda *arguments, **keywords: answer


_nothing = _answering(None)


def _cast_unsafely(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array.cast(type_, safe=False)


def _in_any_schema() -> Callable[..., object]:
    return lambda *arguments, **keywords: evolved(*arguments, **{**keywords, "evolves": True})


def _as_it_was(file: object, *arguments: object) -> object:
    return file


_ROW_INDEXES = frozenset({"create row index", "upsert", "delete", "merge", "move_where"})
_WRITES = frozenset({"upsert", "insert", "delete", "delete keys", "merge"})
_CLEANS = frozenset({"clean commits", "clean versions"})
# Updates and cleans are left.
_BESIDE_CLEANS = frozenset(
    {"new", "merge", "delete", "overwrite", "overwrite partitions", "rollback"}
    | {"archive", "savepoint", "settle", "restore", "cancel", "plan", "run plans"}
    | {"create index", "drop index", "clustering", "compaction", "log compaction"}
)
# The newest rows are read, all of them.
_READ_BESIDE_CLEANS = _BESIDE_CLEANS | {"upsert", "add", "lookup", "values", "past", "indexers"}
_ENGINE = "lakewarden.engine"
GUARDS = (
    Guard(
        "a key that was deleted in one file group is not written to it",
        (f"{_ENGINE}.write.planner:without_dead",),
        lambda state, rows, matches, executor: matches,
        favoured=_WRITES,
    ),
    Guard(
        "time travel before what a clean has kept is refused",
        (f"{_ENGINE}.read.query.plan_query:check_retained",),
        _nothing,
        favoured=_CLEANS,
    ),
    Guard(
        "changes of a window whose files are gone are refused",
        (f"{_ENGINE}.read.query.changes:_check_kept",),
        _nothing,
        favoured=_CLEANS,
    ),
    Guard(
        "a restore is refused where files are gone",
        (f"{_ENGINE}.services.restore.run:obstacles",),
        _answering(()),
        favoured=_CLEANS | {"restore", "upsert"},
    ),
    Guard(
        "a write is rolled back only while nothing is built on it",
        (f"{_ENGINE}.transaction.rollback_request:assert_may_be_taken_back",),
        _nothing,
        favoured=frozenset({"rollback", "compaction", "clustering"}),
    ),
    Guard(
        "files of savepoints and pending plans are not cleaned",
        (
            f"{_ENGINE}.services.clean.draft:held_files",
            f"{_ENGINE}.services.retention.file_removal:held_files",
        ),
        lambda active: {},
        favoured=_CLEANS | {"savepoint", "schedule", "run plan"},
    ),
    Guard(
        "a write by another index that would change which keys are one row is refused",
        (f"{_ENGINE}.index.kinds:Identity.equals_in_effect",),
        _answering(True),
        favoured=frozenset({"upsert by other index"}),
    ),
    Guard(
        "rows are cast only where nothing is lost",
        (f"{_ENGINE}.write.rows.exact:_cast",),
        _cast_unsafely,
        favoured=frozenset({"misfit"}),
    ),
    Guard(
        "the schema changes when somebody asks",
        (f"{_ENGINE}.write.writer:evolved",),
        _in_any_schema(),
        favoured=frozenset({"misfit"}),
    ),
    Guard(
        "bounds say nothing of NaN",
        (f"{_ENGINE}.read.merge.predicate:_fractions",),
        _answering(()),
    ),
    Guard(
        "keys whose parts hold what stands between them are refused",
        (f"{_ENGINE}.table.keygen.key_scheme:KeyScheme._refuse_ambiguous",),
        _nothing,
        favoured=frozenset({"misfit"}),
    ),
    Guard(
        "an index that was built on what is rolled back is dropped",
        (f"{_ENGINE}.transaction.rollback.execution:untrue_without",),
        _answering(frozenset()),
        favoured=frozenset({"create index", "drop index", "rollback", "create metadata table"}),
    ),
    Guard(
        "a log that is shorter than recorded is damage",
        (
            f"{_ENGINE}.read.merge.slice_reader:assert_whole",
            f"{_ENGINE}.index.slice_keys:assert_whole",
            f"{_ENGINE}.metadata.reading.partition:assert_whole",
        ),
        _nothing,
    ),
    Guard(
        "deletes are remembered in folds of logs",
        (f"{_ENGINE}.read.merge.fold:_places",),
        lambda order, places: np.full(len(places), -1),
        favoured=_WRITES,
    ),
    Guard(
        "a record index forgets the keys of what is replaced",
        (f"{_ENGINE}.write.writer:replaced_rows",),
        _answering(ReplacedRows()),
        favoured=frozenset({"overwrite partitions", "delete partitions", "overwrite"}),
    ),
    Guard(
        "a secondary index forgets the values of rewritten rows",
        (f"{_ENGINE}.write.files.log_files:ValueWatch.before",),
        _nothing,
        favoured=_ROW_INDEXES,
    ),
    Guard(
        "a secondary index learns what logs make of values",
        (f"{_ENGINE}.write.files.log_files:value_changes",),
        _answering(()),
        favoured=_ROW_INDEXES,
    ),
    Guard(
        "a secondary index learns the values of new rows",
        (f"{_ENGINE}.write.files.write_groups:value_changes",),
        _answering(()),
        favoured=_ROW_INDEXES,
    ),
    Guard(
        "new base files have filters and statistics of expressions",
        (f"{_ENGINE}.write.files.base_files:with_gathered",),
        _as_it_was,
        favoured=_ROW_INDEXES,
    ),
    Guard(
        "new logs have statistics of expressions",
        (f"{_ENGINE}.write.files.write_groups:with_log_content",),
        _as_it_was,
        favoured=_ROW_INDEXES,
    ),
    Guard(
        "statistics of an expression in a partition are made anew",
        (f"{_ENGINE}.metadata.entries.row_index_entries:partition_stats_entries",),
        _answering(NO_ENTRIES),
        favoured=_ROW_INDEXES,
    ),
    Guard(
        "what others have committed to a file group is a conflict",
        (f"{_ENGINE}.transaction.commit:find_conflicts",),
        _answering(()),
        lock=LockKind.KEPT,
    ),
    Guard(
        "rows that come to where a write has searched are a conflict",
        (f"{_ENGINE}.conflicts.touched_groups:ReadScope.invalidated",),
        _answering(()),
        lock=LockKind.KEPT,
        without=frozenset({"rollback", "update", "delete", "restore", "clean", "archive"}),
    ),
    Guard(
        "whoever commits second looks for its new keys",
        (f"{_ENGINE}.write.writer:TableWriter._key_check",),
        _nothing,
        lock=LockKind.KEPT,
    ),
    Guard(
        "a delete in vain looks for keys that others bring",
        (f"{_ENGINE}.write.planner:_deleted_in_vain",),
        _answering(np.zeros(0, np.int64)),
        lock=LockKind.KEPT,
        without=frozenset({"overwrite", "overwrite partitions", "rollback", "add", "update"}),
    ),
    Guard(
        "a committer fences all others",
        (f"{_ENGINE}.transaction.commit:fence_rivals",),
        _answering(True),
        lock=LockKind.NONE,
    ),
    Guard(
        "a listing is proved by a second look",
        (f"{_ENGINE}.snapshot:may_have_removed",),
        _answering(False),
        lock=LockKind.KEPT,
        without=_READ_BESIDE_CLEANS,
        chances=PONDERING,
    ),
    Guard(
        "the metadata table is read as of the timeline",
        (f"{_ENGINE}.metadata.reading.validity:Validity.is_valid",),
        _answering(True),
        lock=LockKind.KEPT,
        without=_READ_BESIDE_CLEANS,
        chances=PONDERING,
    ),
    Guard(
        "a read begins anew where files vanish",
        (f"{_ENGINE}.read.query.answer:SNAPSHOTS_MAX",),
        1,
        lock=LockKind.KEPT,
        without=frozenset({"create index", "drop index", "cancel", "plan"}),
    ),
    Guard(
        "files that vanish under a reader are no damage",
        (f"{_ENGINE}.read.query.answer:files_vanished",),
        _nothing,
        lock=LockKind.KEPT,
        without=_BESIDE_CLEANS,
        chances=RESTLESS,
    ),
    Guard(
        "a plan is published only while what it names is there",
        (f"{_ENGINE}.services.planning.schedule:still_holds",),
        _answering(True),
        lock=LockKind.KEPT,
        without=frozenset({"clean", "archive", "savepoint", "restore", "cancel", "settle"}),
    ),
)


def found_after(guard: Guard, at_most: int | None = None) -> int | None:
    """How many histories or races it takes until one is red without it, and green with it."""
    limit = at_most or (HISTORIES if guard.lock is None else RACES)
    with remembering():
        for seed in range(limit):
            with guard.removed():
                is_red = _fails(guard, seed)
            if is_red and not _fails(guard, seed):
                return seed + 1
    return None


def _fails(guard: Guard, seed: int) -> bool:
    if guard.lock is None:
        return bool(play(History.drawn(seed, favoured=guard.favoured)).failure)
    try:
        Race(RaceKind(guard.lock, guard.chances, without=guard.without), seed).play()
    except Violation:
        return True
    return False


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.histories.guards")
    parser.add_argument("--at-most", type=int, help="how many are played for each")
    parser.add_argument("words", nargs="?", default="", help="a part of a guard's name")
    arguments = parser.parse_args()
    missed = 0
    print("| guard | found after |", "| --- | --- |", sep="\n")
    for guard in GUARDS:
        if arguments.words in guard.name:
            count = found_after(guard, arguments.at_most)
            missed += count is None
            kind = "histories" if guard.lock is None else f"races, lock {guard.lock}"
            print(f"| {guard.name} | {count or 'not found'} {kind} |", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
