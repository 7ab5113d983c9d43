"""Opening a table with 1,000 active instants."""

import subprocess
import sys
from pathlib import Path

from bench.measure import OURS, Measure, clocked, in_turns, within
from bench.places import built_once
from bench.table_properties import table_properties
from bench.tables import PlainTableWriter, file_id, log_name, log_stat, write_at
from bench.workloads import order_columns
from lakewarden.engine.formats.avro.arrow_types import avro_schema, record_names
from lakewarden.engine.table.config import TableType
from lakewarden.table import Table

INSTANTS = 1_000
FILE_GROUPS = 20
# What a new process does, clocked by itself from the first import on.
COLD = """
import sys, time
begin = time.perf_counter()
from lakewarden.table import Table
table = Table(sys.argv[1])
table.timeline(), table.schema
print(time.perf_counter() - begin)
"""


def run() -> list[Measure]:
    """Open the table again and again in this process, and in new ones."""
    folder = str(built_once(f"opening-{INSTANTS}-{FILE_GROUPS}", _build))
    warm = in_turns({OURS: clocked(lambda: _open(folder))}, rounds=21)
    cold = in_turns({OURS: lambda: _seconds_of_a_new_process(folder)}, rounds=7)
    return [
        within(
            f"open a table with {INSTANTS:,} active instants",
            warm,
            at_most_ms=100,
            includes="`Table(path)`, `timeline()` and `schema`: the properties, listings of a "
            f"folder with {3 * INSTANTS:,} files, the content of the newest commit",
        ),
        within(
            "the same in a new process",
            cold,
            at_most_ms=None,
            includes="importing Lakewarden, Arrow and numpy too; not the start of Python",
        ),
    ]


def _open(folder: str) -> None:
    table = Table(folder)
    assert len(table.timeline().instants) == INSTANTS
    assert table.schema.names


def _seconds_of_a_new_process(folder: str) -> float:
    command = [sys.executable, "-c", COLD, folder]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def _build(folder: Path) -> None:
    """Delta commits that each say of 20 file groups what they appended; only they are there."""
    columns = order_columns()
    properties = table_properties(
        "orders", TableType.MERGE_ON_READ, columns, key="id", ordering="ts"
    )
    schema_text = avro_schema(columns, *record_names("orders"))
    writer = PlainTableWriter(folder, properties, schema_text)
    groups = [file_id(number) for number in range(FILE_GROUPS)]
    for number in range(INSTANTS):
        write = write_at(number)
        stats = [
            log_stat(group, log_name(group, write), "", size_bytes=20_000, updates=100)
            for group in groups
        ]
        writer.commit(write, stats)
