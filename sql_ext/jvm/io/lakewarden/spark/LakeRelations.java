package io.lakewarden.spark;

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases$;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Relations of a plan that stand for tables of ours, also where Spark has wrapped the table. */
final class LakeRelations {
  private LakeRelations() {}

  /** The table that a node stands for; null if it is something else. */
  static LakeTable tableOf(LogicalPlan node) {
    if (!(node instanceof DataSourceV2Relation relation)) {
      return null;
    }
    return unwrapped(relation.table());
  }

  /** The table of ours that Spark's is, or has wrapped; null if it is something else. */
  static LakeTable unwrapped(Table table) {
    Table inner = table instanceof RowLevelOperationTable wrapped ? wrapped.table() : table;
    return inner instanceof LakeTable lake ? lake : null;
  }

  /** The table that a statement writes to; null if it is something else. */
  static LakeTable targetOf(Object target) {
    return target instanceof LogicalPlan plan
        ? tableOf(EliminateSubqueryAliases$.MODULE$.apply(plan))
        : null;
  }

  /** The table that a statement about tables names; null if it is something else. */
  static LakeTable namedBy(LogicalPlan named) {
    return named instanceof ResolvedTable resolved && resolved.table() instanceof LakeTable table
        ? table
        : null;
  }

  /** The same relation with another table of the same columns. */
  static DataSourceV2Relation withTable(DataSourceV2Relation relation, LakeTable table) {
    Object[] parts = new Object[relation.productArity()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = relation.productElement(i) == relation.table() ? table : relation.productElement(i);
    }
    return (DataSourceV2Relation) relation.makeCopy(parts);
  }
}
