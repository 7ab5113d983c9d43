package io.lakewarden.spark;

import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/** A procedure in a plan, of which Spark 3.5 has none. */
interface ResolvedProcedure {
  CatalogPlugin catalog();
}
