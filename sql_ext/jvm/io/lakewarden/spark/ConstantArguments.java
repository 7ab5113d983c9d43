package io.lakewarden.spark;

import org.apache.spark.sql.catalyst.analysis.ResolvedProcedure;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Call;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/** Holds the arguments of Spark's own calls to {@link Constants}. */
final class ConstantArguments extends PlanRule {
  ConstantArguments(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (node instanceof Call call
        && call.procedure() instanceof ResolvedProcedure procedure
        && procedure.catalog() instanceof Procedures) {
      boolean allIsKnown = call.execute() && call.resolved() && call.bound();
      for (Expression argument : CollectionConverters.asJava(call.args())) {
        Constants.check(procedure.procedure().name(), argument, allIsKnown);
      }
    }
    return null;
  }
}
