package io.lakewarden.spark;

import io.lakewarden.spark.LakeTable.Role;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Views made of DataFrames. Spark stores the name of each table that has one, and would ask the
 * catalog for its columns, which the catalog does not know. So a view's tables have no names, and
 * are opened anew, with the columns that the view was made with, at each use of the view.
 */
final class FrameViews extends PlanRule {
  FrameViews(SparkSession session) {
    super(session);
  }

  /** A view's plan counts as analysed, and a rule would pass over it otherwise. */
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transformUp(replacing());
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (node instanceof CreateViewCommand view && view.originalText().isEmpty()) {
      LogicalPlan unnamed = view.plan().transformUp(replacing(FrameViews::unnamed));
      return unnamed == view.plan() ? null : TableRelations.withPart(view, view.plan(), unnamed);
    }
    LakeTable table = LakeRelations.tableOf(node);
    return table == null || ((DataSourceV2Relation) node).identifier().isDefined()
        ? null
        : openedAnew((DataSourceV2Relation) node, table);
  }

  private static LogicalPlan unnamed(LogicalPlan node) {
    LakeTable table = LakeRelations.tableOf(node);
    if (table == null || ((DataSourceV2Relation) node).identifier().isEmpty()) {
      return null;
    }
    DataSourceV2Relation relation = (DataSourceV2Relation) node;
    List<Object> parts = new ArrayList<>(CollectionConverters.asJava(relation.productIterator().toList()));
    parts.set(parts.indexOf(relation.catalog()), Option.empty());
    parts.set(parts.indexOf(relation.identifier()), Option.empty());
    return (LogicalPlan) relation.makeCopy(parts.toArray());
  }

  private static LogicalPlan openedAnew(DataSourceV2Relation relation, LakeTable table) {
    LakeTable now = LakeTable.open(table.path(), table.options(), Role.READ);
    for (AttributeReference column : CollectionConverters.asJava(relation.output())) {
      if (!isIn(now.schema(), column)) {
        throw outdated(relation, column);
      }
    }
    return LakeRelations.withTable(relation, now);
  }

  private static boolean isIn(StructType schema, AttributeReference column) {
    for (StructField field : schema.fields()) {
      if (field.name().equalsIgnoreCase(column.name())) {
        return DataType.equalsIgnoreNullability(field.dataType(), column.dataType());
      }
    }
    return false;
  }

  private static RuntimeException outdated(DataSourceV2Relation relation, AttributeReference column) {
    return LakewardenException.at(
        relation.origin(),
        "VIEW_OUTDATED",
        "51024",
        "The view reads the column " + column.name() + " of " + relation.table().name() + ".",
        "The table has no such column of the type " + column.dataType().sql() + " any more.",
        "Create the view again.");
  }
}
