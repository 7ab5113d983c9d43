"""The demonstration behind `make demo`: a tour of one table that Java Hudi has written.

The table is one of the golden tables of the tests: merge-on-read, with a compaction that somebody
scheduled and never ran, so that there is something to see.
"""

import sys
import tempfile
import zipfile
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from lakewarden.cli import main as command_line
from lakewarden.cli.output import Answer, as_table
from lakewarden.table import Table

TABLE = "mor_compaction_requested"
ARCHIVE = Path(__file__).parents[1] / "tests" / "golden" / f"{TABLE}.zip"


def main() -> int:
    """Show what can be asked about a table, first without Spark and then with it."""
    if not ARCHIVE.is_file():
        print("The demonstration needs a checkout of Lakewarden: its table is among the tests.")
        return 1
    with tempfile.TemporaryDirectory(prefix="lakewarden-demo-") as folder:
        with zipfile.ZipFile(ARCHIVE) as archive:
            archive.extractall(folder)
        path = str(Path(folder) / ARCHIVE.stem)
        table = Table(path)
        show_timeline(path)
        show_files(table)
        show_rows(table)
        show_history(table)
        show_spark(table)
    print("\nThat was all; the table was a copy and is gone. See README.md for what comes next.")
    return 0


def show_timeline(path: str) -> None:
    heading("What happened to the table", f"$ lakewarden timeline {TABLE}")
    command_line(["timeline", path])
    print("\nThe compaction was requested and never ran; later writes went on all the same.")


def show_files(table: Table) -> None:
    heading("Which files hold it now", "table.file_slices()")
    columns = ("partition", "file_group", "base_instant", "log_files", "bytes")
    rows = [
        (
            slice_.partition,
            slice_.file_id[:8],
            slice_.base_instant,
            len(slice_.log_files),
            slice_.size_bytes,
        )
        for slice_ in table.file_slices()
    ]
    show(pa.table(list(zip(*rows, strict=True)), names=columns))


def show_rows(table: Table) -> None:
    wanted = [("p", "=", "c"), ("n", "<", 20)]
    heading("Rows, base files and logs merged", f"table.read_arrow(['id', 'name', 'n'], {wanted})")
    show(table.read_arrow(["id", "name", "n"], filter=wanted))
    heading("What that read skipped, and why", "print(table.explain(filter=...))")
    print(table.explain(filter=wanted))


def show_history(table: Table) -> None:
    first = table.timeline().completed()[0]
    assert first.completed is not None
    heading("Back in time", f"table.read_arrow(as_of='{first.requested}').num_rows")
    print(table.read_arrow(as_of=first.requested).num_rows)
    heading("Rows that later commits wrote", f"table.changes_arrow(since='{first.completed}')")
    show(table.changes_arrow(first.completed, columns=["_hoodie_commit_time", "id", "name"]))
    heading("Rows by key", "table.lookup(['k000', 'k020', 'nobody'])")
    show(table.lookup(["k000", "k020", "nobody"], columns=["id", "name", "v"]))


def show_spark(table: Table) -> None:
    heading("The same as a Spark DataFrame", "table.read(spark).groupBy('p').count()")
    session = quiet_session()
    try:
        frame = table.read(session).groupBy("p").count().orderBy("p")
        show(frame.toArrow())
    finally:
        session.stop()


def quiet_session() -> SparkSession:
    """A small session on this machine that listens on loopback only and keeps its log to itself."""
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        "spark.pyspark.python": sys.executable,
    }
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def show(rows: pa.Table) -> None:
    for line in as_table(Answer(rows.column_names, rows.to_pylist())):
        print(line)


def heading(title: str, call: str) -> None:
    print(f"\n== {title}\n   {call}\n")


if __name__ == "__main__":
    sys.exit(main())
