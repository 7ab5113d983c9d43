package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.CreateTempViewUsing;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Holds the data source of our format to what the owner of a server allows. It opens tables in
 * workers, which do not know the limits. A client with Python of its own in these workers needs no
 * source to get around the limits.
 */
final class SourceLimits extends PlanRule {
  SourceLimits(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (node instanceof UnresolvedDataSource source && isOurs(source.format())) {
      List<String> paths = CollectionConverters.asJava(source.paths());
      check(CollectionConverters.asJava(source.options()), paths, false);
    }
    if (node instanceof CreateTempViewUsing view && isOurs(view.provider())) {
      check(CollectionConverters.asJava(view.options()), List.of(), false);
    }
    if (node instanceof V2WriteCommand
        && node.productElement(0) instanceof DataSourceV2Relation target
        && target.table() instanceof PythonTable table
        && isOurs(table.name())) {
      check(target.options().asCaseSensitiveMap(), List.of(), true);
    }
    return null;
  }

  private static boolean isOurs(String format) {
    return format.equalsIgnoreCase(TableRelations.FORMAT);
  }

  private static void check(Map<String, String> options, List<String> more, boolean changes) {
    List<String> paths = new ArrayList<>(more);
    options.forEach(
        (key, value) -> {
          if (key.equalsIgnoreCase("path")) {
            paths.add(value);
          }
        });
    PythonBridge.ask(
        "check_source",
        "paths", paths,
        "options", new HashMap<>(options),
        "changes", changes,
        "permissions", Statement.permissions());
  }
}
