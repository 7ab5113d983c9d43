"""Reads tables over Spark Connect and prints how their rows differ from Arrow's: nothing, that is.

Run as a process of its own, since a process has either a classic session or a remote one.
"""

import sys

from pyspark.sql import SparkSession

from lakewarden import Table
from tests.canonical import canonical_rows, difference
from tests.small_session import TIME_ZONE


def main(server: str, paths: list[str]) -> None:
    spark = SparkSession.builder.remote(server).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", TIME_ZONE)
    for path in paths:
        table = Table(path)
        frame, rows = table.read(spark), table.read_arrow()
        print(difference(canonical_rows(rows), canonical_rows(frame.toArrow())), end="")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
