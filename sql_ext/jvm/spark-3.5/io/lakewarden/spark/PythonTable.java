package io.lakewarden.spark;

import org.apache.spark.sql.connector.catalog.SupportsWrite;

/** A table of a Python data source, of which Spark 3.5 has none. */
interface PythonTable extends SupportsWrite {}
