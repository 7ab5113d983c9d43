"""SQL through the jar: what other statements pay for it, and what a CALL costs besides its work."""

from pathlib import Path

import pyarrow as pa

from bench import services
from bench.measure import OURS, Measure, in_turns, near, within
from bench.places import built_once
from lakewarden.table import Table

PLAIN = "a plain session"


def run() -> list[Measure]:
    """`SELECT 1` with and without us, and a CALL less the work that it orders."""
    folder = str(built_once("sql-plans", _build))
    with services.spark() as plain, services.spark() as enabled:
        enabled.ask("enable")
        selects = in_turns(
            {OURS: enabled.clocked("select_one"), PLAIN: plain.clocked("select_one")},
            rounds=15,
            warm_ups=5,
        )
        calls = in_turns({OURS: enabled.clocked("call", table=folder)}, rounds=15, warm_ups=5)
    return [
        near(
            "1,000 times SELECT 1",
            selects,
            PLAIN,
            at_most=1.02,
            includes="parsing and analysing, each session in a process of its own",
        ),
        within(
            "a CALL, less the procedure's own work",
            calls,
            at_most_ms=10,
            includes="`CALL show_plans` with its rows collected, less the same procedure called "
            "from Python in the same process, in turns",
        ),
    ]


def _build(folder: Path) -> None:
    schema = pa.schema([("id", pa.string())])
    Table.create(str(folder), schema, ["id"]).upsert(pa.table({"id": ["1", "2"]}))
