"""Log compaction by Java's write client: SQL offers none."""

from collections.abc import Mapping

from pyspark.sql import SparkSession


def log_compaction(
    spark: SparkSession,
    table: str,
    *,
    name: str,
    options: Mapping[str, str],
    instant: str | None = None,
    executes: bool = True,
) -> str | None:
    """Carry out a plan of log compaction, a new one if none is named.

    The answer is the plan's instant, or None if there was nothing to plan.
    """
    jvm = spark._jvm
    properties = jvm.java.util.Properties()
    for key, value in options.items():
        properties.setProperty(key, value)
    builder = jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder().withPath(table)
    config = builder.forTable(name).withProperties(properties).build()
    engine = jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(spark._jsc)
    client = jvm.org.apache.hudi.client.SparkRDDWriteClient(engine, config)
    try:
        if instant is None:
            nothing = jvm.org.apache.hudi.common.util.Option.empty()
            scheduled = client.scheduleLogCompaction(nothing)
            instant = scheduled.get() if scheduled.isPresent() else None
        if executes and instant is not None:
            client.logCompact(instant, True)
    finally:
        client.close()
    return instant
