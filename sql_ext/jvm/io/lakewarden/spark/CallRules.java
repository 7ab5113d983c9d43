package io.lakewarden.spark;

import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/** The rules that are about calls, of which not every Spark knows the same. */
final class CallRules {
  /** EXECUTE IMMEDIATE of Spark 4.0 has a parser of its own. */
  static final List<Function<SparkSession, Rule<LogicalPlan>>> FIRST =
      List.of(QualifiedProcedures.Naming::new);
  static final List<Function<SparkSession, Rule<LogicalPlan>>> RESOLVED =
      List.of(ConstantArguments::new, ScriptResults::new);
  /** What is a constant shows when Spark has worked out all it can. */
  static final List<Function<SparkSession, Rule<LogicalPlan>>> OPTIMISED =
      List.of(ConstantArguments::new);

  private CallRules() {}
}
