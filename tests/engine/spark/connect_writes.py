"""Writes a table over Spark Connect, by a small frame and by workers, and prints what it has then.

Run as a process of its own, since a process has either a classic session or a remote one.
"""

import sys

from pyspark.sql import SparkSession

from lakewarden import Table
from tests.writing.model import contents_of
from tests.writing.shapes import Shape


def main(path: str) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    table = Shape("mor").create(path)
    for rows_max, count in ((100, 3), (0, 5)):
        frame = spark.range(count).selectExpr(
            "string(id) AS id", "'a' AS p", f"{count}L AS ts", "0.5D AS v", "'n' AS name"
        )
        table.upsert(frame, local_rows_max=rows_max)
    print([(row["id"], row["ts"]) for row in contents_of(Table(path).read_arrow())], end="")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
