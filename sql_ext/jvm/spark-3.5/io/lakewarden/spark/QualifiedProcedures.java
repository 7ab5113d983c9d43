package io.lakewarden.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Nothing to do: calls of Spark 3.5 are all of ours, by the last part of their name. */
final class QualifiedProcedures {
  QualifiedProcedures(SparkSession unused) {}

  LogicalPlan in(LogicalPlan plan) {
    return plan;
  }
}
