package io.lakewarden.spark;

import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/** The rules that are about calls, all of which are ours in Spark 3.5. */
final class CallRules {
  static final List<Function<SparkSession, Rule<LogicalPlan>>> FIRST = List.of();
  static final List<Function<SparkSession, Rule<LogicalPlan>>> RESOLVED =
      List.of(FormerCall.Binding::new);
  static final List<Function<SparkSession, Rule<LogicalPlan>>> OPTIMISED = List.of();

  private CallRules() {}
}
