"""All sessions: functions of one session become those of every session that is made later."""

from collections.abc import Iterable, Mapping
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession


def publish(spark: SparkSession, names: Iterable[str]) -> None:
    """Put functions of a session where new sessions of its JVM take theirs from."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    catalyst = gateway.jvm.org.apache.spark.sql.catalyst
    module: Any = getattr(catalyst.analysis, "TableFunctionRegistry$")
    everywhere = module.__getattr__("MODULE$").builtin()
    session: Any = spark._jsparkSession
    here = session.sessionState().tableFunctionRegistry()
    mine = _identifiers(here)
    # How far names are qualified differs between releases of Spark.
    model: Any = next(iter(_identifiers(everywhere).values()))
    for name in names:
        # Both of it at once can be asked for since 4.3 only.
        info, builder = (
            found(mine[name]).get() for found in (here.lookupFunction, here.lookupFunctionBuilder)
        )
        identifier = catalyst.FunctionIdentifier(name, model.database(), model.catalog())
        everywhere.registerFunction(identifier, info, builder)


def _identifiers(registry: Any) -> Mapping[str, JavaObject]:
    found = registry.listFunction()
    identifiers = [found.apply(place) for place in range(found.size())]
    return {one.funcName(): one for one in identifiers}
