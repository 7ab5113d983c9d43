package io.lakewarden.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** All that one statement reads of a table is of one moment, however often it names the table. */
final class OneMoment extends PlanRule {
  private final Map<Map.Entry<String, Map<String, String>>, Long> newest = new HashMap<>();

  OneMoment(SparkSession session) {
    super(session);
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return new OneMoment(session).applied(plan);
  }

  private LogicalPlan applied(LogicalPlan plan) {
    plan.transformDownWithSubqueries(
        replacing(
            node -> {
              LakeTable table = LakeRelations.tableOf(node);
              if (table != null) {
                newest.merge(Map.entry(table.path(), table.options()), table.moment(), Math::max);
              }
              return null;
            }));
    return newest.isEmpty() ? plan : plan.transformDownWithSubqueries(replacing());
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    LakeTable table = LakeRelations.tableOf(node);
    if (table == null) {
      return null;
    }
    long moment = newest.get(Map.entry(table.path(), table.options()));
    return moment == table.moment()
        ? null
        : LakeRelations.withTable((DataSourceV2Relation) node, table.at(moment));
  }
}
