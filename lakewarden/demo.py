"""The demonstration behind `make demo`: a small pipeline on one table, on a local Spark session."""

import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from lakewarden.cli import main as command_line
from lakewarden.cli.output import ResultTable, as_table
from lakewarden.sessions import session as new_session
from lakewarden.table import Table
from lakewarden.table_service_handle import Plan

COLUMNS = ("id", "city", "ts", "qty")
SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("qty", pa.int32())]
)
ROW_TYPE = "id string, city string, ts bigint, qty int"
CITIES = ("Oslo", "Lima", "Kyiv")

Order = tuple[str, str, int, int]


def main() -> int:
    """Run a pipeline, say what each step is, and show what came of it."""
    session = quiet_session()
    try:
        with tempfile.TemporaryDirectory(prefix="lakewarden-demo-") as folder:
            path = str(Path(folder) / "orders")
            table = create(path)
            write(table, session)
            show_history(table)
            show_looks(table)
            show_spark(table, session)
            look_after(table, session)
            show_sql(session, path)
            heading("What happened to the table", "$ lakewarden timeline orders")
            command_line(["timeline", path])
    finally:
        session.stop()
    print("\nThat was all; the table is gone. See README.md for what comes next.")
    return 0


def create(path: str) -> Table:
    heading(
        "A merge-on-read table that Java Hudi could use, too",
        "Table.create(path, schema, key=['id'], partition=['city'], ordering=['ts'], type='mor')",
    )
    table = Table.create(path, SCHEMA, key=["id"], partition=["city"], ordering=["ts"], type="mor")
    print(f"Its metadata table keeps {', '.join(index.name for index in table.indexes())}.")
    return table


def write(table: Table, session: SparkSession) -> None:
    def frame(*rows: Order) -> DataFrame:
        return session.createDataFrame(list(rows), ROW_TYPE)

    first = [(f"order-{n:02d}", CITIES[n % 3], 100, n) for n in range(12)]
    heading("Twelve orders from Spark", "table.bulk_insert(dataframe)")
    print(table.bulk_insert(frame(*first)))
    heading("Two changes, one too late, and a new order", "table.upsert(dataframe)")
    changes = (
        ("order-00", "Oslo", 200, 70),
        ("order-01", "Lima", 50, 99),
        ("order-12", "Kyiv", 200, 12),
    )
    print(table.upsert(frame(*changes)))
    heading("One order less", "table.delete(['order-05'])")
    print(table.delete(["order-05"]))
    heading("One more of everything in Oslo", "table.update_where([('city', '=', 'Oslo')], ...)")
    more = {"qty": pc.add(pc.field("qty"), 1), "ts": pc.add(pc.field("ts"), 1)}
    print(table.update_where([("city", "=", "Oslo")], more))


def show_history(table: Table) -> None:
    first, second, *_ = table.timeline().completed()
    assert second.completed is not None
    heading("The rows now", "table.read_arrow()")
    show(table.read_arrow(COLUMNS).sort_by("id"))
    heading("As it was after the first write", f"table.read_arrow(as_of='{first.requested}')")
    print(f"{table.read_arrow(as_of=first.requested).num_rows} rows")
    heading("What later writes changed", f"table.changes_arrow(since='{second.completed}')")
    show(table.changes_arrow(second.completed, columns=COLUMNS).sort_by("id"))


def show_looks(table: Table) -> None:
    wanted = [("city", "=", "Lima"), ("qty", "<", 5)]
    heading("What a filter skips, and why", f"print(table.explain(filter={wanted}))")
    print(table.explain(filter=wanted))
    heading("Rows by key", "table.lookup(['order-00', 'order-05'])")
    show(table.lookup(["order-00", "order-05"], columns=COLUMNS))


def show_spark(table: Table, session: SparkSession) -> None:
    heading("As a Spark DataFrame", "table.read(spark).groupBy('city').sum('qty')")
    show(table.read(session).groupBy("city").sum("qty").orderBy("city").toArrow())


def look_after(table: Table, session: SparkSession) -> None:
    heading("A plan that gives way to writes", "plan = table.compaction.schedule(cancellable=True)")
    plan = table.compaction.schedule(cancellable=True)
    assert isinstance(plan, Plan)
    print(plan)
    heading("Something else comes first", "plan.cancel('backfill first'); plan.state")
    print(plan.cancel("backfill first"))
    print(plan.state)
    heading("Another one, executed by Spark", "table.compaction.schedule_and_run(spark=spark)")
    print(table.compaction.schedule_and_run(spark=session))
    heading("Nothing is left to do, and why", "table.compaction.schedule()")
    print(table.compaction.schedule())
    heading("A savepoint, a mistake, and back", "table.restore(table.savepoint().instant)")
    saved = table.savepoint(comment="before the mistake")
    print(table.delete_where([("qty", ">", 0)]))
    print(f"{len(table.restore(saved.instant).undone)} write undone,", end=" ")
    print(f"{table.read_arrow().num_rows} rows")


def show_sql(session: SparkSession, path: str) -> None:
    by_sql(session, "Register the table", f"CREATE TABLE orders USING lakewarden LOCATION '{path}'")
    by_sql(
        session,
        "Change it by SQL",
        "UPDATE orders SET qty = qty + 1, ts = ts + 1 WHERE city = 'Lima'",
    )
    by_sql(
        session,
        "A plan, which is a row",
        "CALL run_compaction(op => 'schedule', table => 'orders', cancellable => true)",
    )
    by_sql(
        session,
        "State is a table",
        f"SELECT instant, service, state FROM lakewarden_plans('{path}')",
    )
    by_sql(session, "An index on every key", "CREATE INDEX record_index ON orders (id)")


def by_sql(session: SparkSession, title: str, statement: str) -> None:
    heading(title, statement)
    rows = session.sql(statement).toArrow()
    if rows.num_columns:
        show(rows)


def quiet_session() -> SparkSession:
    """A small session on this machine that listens on loopback only and keeps its log to itself."""
    settings = {
        "spark.master": "local[2]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
    }
    return new_session(settings)


def show(rows: pa.Table) -> None:
    for line in as_table(ResultTable(rows.column_names, rows.to_pylist())):
        print(line)


def heading(title: str, call: str) -> None:
    print(f"\n== {title}\n   {call}\n")


if __name__ == "__main__":
    sys.exit(main())
