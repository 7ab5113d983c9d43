"""Writing beside other lake formats: 220,000 rows upserted into 2 million."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench import own_writer, services
from bench.measure import Measure, Rounds, faster, in_turns, near
from bench.private_copies import new_folder
from bench.services import MeasuredService
from bench.write_workload import (
    CHECKED_COLUMN,
    KEY,
    ORDERING,
    Checksum,
    Sources,
    WriteWorkload,
    write_sources,
)

WORKLOAD = WriteWorkload(rows=2_000_000, updates=200_000, inserts=20_000, deletes=20_000)
ON_WRITE, ON_READ = "Lakewarden, copy on write", "Lakewarden, merge on read"
TITLE = "upsert of 220,000 rows into 2,000,000"
INCLUDES = (
    "from the path of a Parquet file with the rows to the completed commit, everybody on a new "
    "table that they have loaded with their own defaults; ours has the metadata table's `files` "
    "and `column_stats`, and index SIMPLE; "
)
ORDERED = f"{INCLUDES}older rows would not replace newer ones"
UNORDERED = f"{INCLUDES}the peer knows no ordering of rows"


@dataclass(frozen=True, slots=True)
class Lake:
    """A table format. All its calls name the path of a `table`, all but the last a `source`."""

    name: str
    load: Callable[..., object]
    # Says the seconds it took.
    upsert: Callable[..., float]
    checksum: Callable[..., Checksum]


def run() -> list[Measure]:
    """Everybody takes turns at loading and upserting; only the upsert counts."""
    own = _own(ON_WRITE, "cow"), _own(ON_READ, "mor")
    with services.delta_rs() as delta, services.ducklake() as duck:
        peers = _peer(delta), _peer(duck)
        quick = _rounds(*own, *peers)
        measures = _beside_quick(quick, *(peer.name for peer in peers))
    with services.pyiceberg() as iceberg:
        peer = _peer(iceberg)
        # One round of it takes longer than all of the others.
        slow = _rounds(*own, peer, rounds=1, warm_ups=0)
    case = f"{TITLE}, copy on write both"
    beside_slow = faster(case, slow, peer.name, at_least=1, includes=UNORDERED, ours=ON_WRITE)
    return [*measures, beside_slow]


def _beside_quick(rounds: Rounds, delta: str, duck: str) -> list[Measure]:
    beside_delta = partial(faster, rounds=rounds, peer=delta, at_least=1, includes=ORDERED)
    return [
        near(
            f"{TITLE}, merge on read both",
            rounds,
            duck,
            at_most=1.5,
            includes=ORDERED,
            ours=ON_READ,
        ),
        beside_delta(f"{TITLE}, merge on read beside copy on write", ours=ON_READ),
        beside_delta(f"{TITLE}, copy on write both", ours=ON_WRITE),
    ]


def _own(name: str, kind: str) -> Lake:
    write = partial(own_writer.write, kind=kind)
    load, upsert = partial(write, operation="bulk_insert"), partial(write, operation="upsert")
    return Lake(name, load, upsert, own_writer.checksum)


def _peer(service: MeasuredService) -> Lake:
    return Lake(
        service.ask("versions"),
        partial(service.ask, "load"),
        partial(service.ask, "upsert", key=KEY, ordering=ORDERING),
        partial(service.ask, "checksum", column=CHECKED_COLUMN),
    )


def _rounds(*lakes: Lake, rounds: int = 3, warm_ups: int = 1) -> Rounds:
    sources = write_sources(WORKLOAD)
    expected = sources.upserted()
    turns = {lake.name: partial(_upserted, lake, sources, expected) for lake in lakes}
    return in_turns(turns, rounds=rounds, warm_ups=warm_ups)


def _upserted(lake: Lake, sources: Sources, expected: Checksum) -> float:
    """The seconds of the upsert; every table is checked."""
    with new_folder() as folder:
        table = str(folder)
        lake.load(table=table, source=str(sources.base))
        seconds = lake.upsert(table=table, source=str(sources.upsert))
        assert lake.checksum(table=table) == expected, lake.name
    return seconds
