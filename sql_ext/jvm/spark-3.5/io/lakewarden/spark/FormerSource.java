package io.lakewarden.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;

/**
 * The format of `spark.read` and `df.write` for tables that are there: Spark 3.5 has no data sources
 * in Python.
 */
public final class FormerSource extends TableSource implements DataSourceRegister {
  @Override
  public String shortName() {
    return TableRelations.FORMAT;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitions, Map<String, String> given) {
    Map<String, String> options = new HashMap<>(given);
    String path = options.remove("path");
    if (path == null) {
      throw LakewardenException.of(
          "NO_PATH",
          "42000",
          "The table's path is missing.",
          "The data source finds a table by its path, not by a name.",
          "Pass it to load() or save(); spark.table takes names.");
    }
    return LakeTable.open(path, options, LakeTable.Role.READ);
  }
}
