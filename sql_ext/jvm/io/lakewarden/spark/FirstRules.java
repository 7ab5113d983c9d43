package io.lakewarden.spark;

import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/** Rules that see a plan before Spark looks for anything in it: those of hints come first. */
final class FirstRules {
  private FirstRules() {}

  static void inject(
      SparkSessionExtensions extensions, List<Function<SparkSession, Rule<LogicalPlan>>> rules) {
    rules.forEach(rule -> extensions.injectHintResolutionRule(TableRules.asScala(rule)));
  }

  static void into(SparkSession session, List<Function<SparkSession, Rule<LogicalPlan>>> rules)
      throws ReflectiveOperationException {
    TableRules.append(session.sessionState().analyzer(), "hintResolutionRules", rules, session);
  }
}
