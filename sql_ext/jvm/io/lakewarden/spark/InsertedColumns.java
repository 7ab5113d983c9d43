package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * INSERT by position. Spark's tables and Hudi's have their partition columns last; a table that has
 * them elsewhere would take the values of such a statement for other columns.
 */
final class InsertedColumns {
  private static final String ALLOWED = "lakewarden.sql.insert.by.position";

  private InsertedColumns() {}

  static void check(InsertIntoStatement insert, LakeTable table) {
    List<String> partitions = table.partitions();
    List<String> columns = table.ownColumns();
    List<String> order = new ArrayList<>(columns);
    order.removeAll(partitions);
    order.addAll(partitions);
    boolean isByName = insert.byName() || !insert.userSpecifiedCols().isEmpty();
    if (isByName || order.equals(columns) || namesAll(insert, partitions) || isAllowed()) {
      return;
    }
    throw LakewardenException.of(
        "INSERT_BY_POSITION",
        "0A000",
        "INSERT by position is ambiguous for " + table.name() + ".",
        "Its partition columns are not the last ones, as they are in tables of Spark and Hudi.",
        "Name the columns: ("
            + String.join(", ", columns)
            + "). Or set "
            + ALLOWED
            + "=true, for that order.");
  }

  /** Whether the statement gives each partition column a value of its own. */
  private static boolean namesAll(InsertIntoStatement insert, List<String> partitions) {
    Map<String, Option<String>> spec = CollectionConverters.asJava(insert.partitionSpec());
    long named = spec.values().stream().filter(Option::isDefined).count();
    return !partitions.isEmpty() && named == partitions.size();
  }

  private static boolean isAllowed() {
    SQLConf conf = SQLConf.get();
    String said = conf.getConfString(ALLOWED, conf.getConfString("spark." + ALLOWED, "false"));
    return said.equalsIgnoreCase("true");
  }
}
