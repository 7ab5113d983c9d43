"""A stream from files into a table, killed in the middle and started again.

Run it with `python examples/streaming.py`. It makes files of orders, starts a query that upserts
them in a process of its own, kills the process, starts it again with the same checkpoint, and
checks that each order is in the table once, in its newest state.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import lakewarden

FILES, ORDERS = 6, 40
COLUMNS = "id STRING, city STRING, ts BIGINT, state STRING"
SETTINGS = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    **lakewarden.spark_settings(),
}


def play(lake: Path) -> None:
    """Two lives of one query, and what is in the table after them."""
    write_files(lake / "incoming")
    table = create_table(lake / "orders")
    first = start(lake)
    kill_within_a_batch(first, table)
    print(f"Killed. In the table: batches up to {newest(table)}, {len(table.read_arrow())} orders.")
    if start(lake).wait() != 0:
        sys.exit("The second query has failed.")
    check(table)
    print(table.streams())


def write_files(folder: Path) -> None:
    """Each file has some new orders, and a later state of each one before."""
    folder.mkdir()
    for number in range(FILES):
        orders = range((number + 1) * ORDERS)
        rows = [{"id": f"o{n}", "city": "Oslo", "ts": number, "state": f"{number}"} for n in orders]
        (folder / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))


def create_table(path: Path) -> lakewarden.Table:
    """A table whose record index finds the orders that come again."""
    columns = [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("state", pa.string()),
    ]
    return lakewarden.Table.create(
        str(path),
        pa.schema(columns),
        key=["id"],
        ordering=["ts"],
        type="mor",
        indexes=["record_index"],
    )


def start(lake: Path) -> "subprocess.Popen[bytes]":
    """The query in a process of its own, which Spark's own belong to."""
    return subprocess.Popen([sys.executable, __file__, str(lake)], start_new_session=True)


def run_query(lake: Path) -> None:
    """Upsert the files that are there, one in a batch, and stop."""
    spark = lakewarden.session(SETTINGS)
    files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    query = lakewarden.stream_upsert(
        files.json(f"{lake}/incoming"),
        f"{lake}/orders",
        checkpoint=f"{lake}/checkpoint",
        sequence_by="ts",
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    spark.stop()


def kill_within_a_batch(process: "subprocess.Popen[bytes]", table: lakewarden.Table) -> None:
    """Kill the query as soon as its third batch is under way, wherever it is in it."""
    while process.poll() is None and not any((one.started or 0) >= 2 for one in table.streams()):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def newest(table: lakewarden.Table) -> int | None:
    """The newest batch in the table."""
    return table.streams()[0].batch


def check(table: lakewarden.Table) -> None:
    """Each order once, with the state of the last file; each batch by one commit."""
    rows = table.read_arrow(["id", "ts"])
    ids = rows.column("id").to_pylist()
    assert sorted(ids) == sorted(f"o{n}" for n in range(FILES * ORDERS)), "orders are missing"
    assert set(rows.column("ts").to_pylist()) == {FILES - 1}, "an order is not up to date"
    assert newest(table) == FILES - 1, "a batch is missing"
    assert len(table.timeline().completed()) == FILES, "a batch was written twice"
    print(f"All {len(ids)} orders are in the table once, each in its newest state.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_query(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            play(Path(folder))
