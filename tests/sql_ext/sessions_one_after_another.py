"""Makes sessions in one JVM, in the ways there are, and prints what each says to a CALL.

Run as a process of its own: a process has one JVM, and here it is set up from outside.
"""

import sys

from pyspark.sql import SparkSession

import lakewarden
from tests.small_session import SETTINGS

PLAIN = {
    "spark.jars": lakewarden.jar_path(),
    "spark.sql.extensions": "io.lakewarden.spark.Extensions",
}


def main(path: str) -> None:
    by_settings = SparkSession.builder.master("local[1]").config(map={**SETTINGS, **PLAIN})
    session = by_settings.getOrCreate()
    say(session, path)
    say(lakewarden.enable(session), path)
    session.stop()
    say(by_settings.getOrCreate(), path)
    SparkSession.active().stop()
    say(lakewarden.session({"spark.master": "local[1]"}), path)
    SparkSession.active().stop()


def say(session: SparkSession, path: str) -> None:
    try:
        print(session.sql(f"CALL show_plans(path => '{path}')").collect())
    except Exception as error:
        print(getattr(error, "getCondition", error.getErrorClass)())


if __name__ == "__main__":
    main(sys.argv[1])
