package io.lakewarden.spark;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The source that CREATE TABLE gets instead of our format, so that Spark leaves the rest to us. */
public class TableSource implements TableProvider {
  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return getTable(null, null, options).schema();
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitions, Map<String, String> options) {
    throw new UnsupportedOperationException("A table is found by its name in the catalog.");
  }

  /** The same for a table that is created by Hudi's name. */
  public static final class Hudi extends TableSource {}
}
