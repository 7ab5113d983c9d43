"""Planning a compaction when 12 of 10,000 partitions have logs, 12 of 100,000, and all of 20,000.

Half of the 12 were skipped by the last plan, and half were written to since.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import services
from bench.measure import OURS, Clocked, Measure, clocked, faster, in_turns, near, within
from bench.places import built_once
from bench.private_copies import private_copy
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import draft, schedule
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage
from lakewarden.engine.transaction.state.context import Context
from tests.incremental.names_only import LARGE, TOUCHED, Names, empty_table, touched_table

MANY, FEW = 10_000, 1_000
MOST, ALL = 100_000, 20_000
SMALLER = f"the same with {FEW:,} partitions"
AT_MOST, AT_LEAST = 1.2, 5.0
MS_MAX, MS_MAX_OF_ALL = 60, 1000
INCLUDES = (
    "opening the table, its window, the slices of the partitions in it, the plan;"
    " nothing is published"
)


def run() -> list[Measure]:
    many, few = table_of(MANY), table_of(FEW)
    sizes = in_turns(
        {OURS: clocked(partial(_draft, many)), SMALLER: clocked(partial(_draft, few))}, rounds=15
    )
    with services.java_planner() as java:
        name = java.ask("versions")
        planned = partial(java.ask, "plan", expected=len(TOUCHED))
        turns = {OURS: _published(many, _plan), name: _published(many, planned)}
        rounds = in_turns(turns, rounds=5)
    return [
        near(
            f"a plan for {len(TOUCHED)} of {MANY:,} partitions",
            sizes,
            SMALLER,
            at_most=AT_MOST,
            includes=INCLUDES,
        ),
        within(
            f"a plan for {len(TOUCHED)} of {MANY:,} partitions, by the clock",
            sizes,
            at_most_ms=MS_MAX,
            includes=INCLUDES,
        ),
        *_larger(),
        faster(
            f"a plan for {len(TOUCHED)} of {MANY:,} partitions, beside Java",
            rounds,
            name,
            at_least=AT_LEAST,
            includes="from the call to the published plan, both incremental, each on a copy of one"
            " table of ours; Java by its procedure `run_compaction`",
        ),
    ]


def _larger() -> list[Measure]:
    most, everything = table_of(MOST), built_once(f"planning-all-{ALL}", _build_all)
    few = in_turns({OURS: clocked(partial(_draft, most))}, rounds=15)
    all_ = in_turns({OURS: clocked(partial(_draft, everything, ALL))}, rounds=5)
    title = f"a plan for {len(TOUCHED)} of {MOST:,} partitions"
    return [
        within(title, few, at_most_ms=MS_MAX, includes=INCLUDES),
        within(
            f"a plan for all of {ALL:,} partitions",
            all_,
            at_most_ms=MS_MAX_OF_ALL,
            includes=INCLUDES,
        ),
    ]


def table_of(partitions: int) -> Path:
    return built_once(f"planning-{partitions}", partial(_build, partitions=partitions))


def _build(folder: Path, partitions: int) -> None:
    _copy(touched_table(COMPACTION, partitions).storage, folder)


def _build_all(folder: Path) -> None:
    """A log in each partition, and no plan yet."""
    world = empty_table()
    table = Names(world)
    table.write(range(ALL), size=LARGE)
    table.write(range(ALL), logs=True)
    _copy(world.storage, folder)


def _copy(storage: Storage, folder: Path) -> None:
    """The data files are but names: planning reads none."""
    for entry in storage.walk(""):
        path = folder / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(storage.read(entry.path))


def _published(table: Path, plan: Callable[..., float]) -> Clocked:
    """A plan on a copy of its own, as it is not to be found by the next one."""

    def run() -> float:
        with private_copy(table) as copy:
            return plan(table=str(copy))

    return run


def _plan(table: str) -> float:
    return clocked(lambda: schedule(_context(table), COMPACTION, PlanRequest()))()


def _draft(table: Path, groups: int = len(TOUCHED)) -> None:
    drafted = draft(_context(str(table)), COMPACTION, PlanRequest())
    assert drafted, drafted
    assert len(drafted.groups) == groups


def _context(table: str) -> Context:
    storage, ports, settings = open_storage(Location(table)), Ports(), Settings.of()
    return Context(storage, open_lock(storage, settings, ports), ports, settings)
