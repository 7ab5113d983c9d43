package io.lakewarden.spark;

import org.apache.spark.sql.catalyst.SqlScriptingContextManager;
import org.apache.spark.sql.catalyst.analysis.ResolvedProcedure;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Call;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Lets a script give the rows of a call, as it gives those of a SELECT: Spark takes a call for a
 * command, and scripts drop what commands say.
 */
final class ScriptResults extends PlanRule {
  /** Where Spark 4.0 keeps what a script has declared. */
  private static final String FORMER_CONTEXT =
      "org.apache.spark.sql.catalyst.SqlScriptingLocalVariableManager";

  ScriptResults(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    boolean isOurs =
        node instanceof CommandResult result
            && result.commandLogicalPlan() instanceof Call call
            && call.procedure() instanceof ResolvedProcedure procedure
            && procedure.catalog() instanceof Procedures;
    return isOurs && isInScript()
        ? new Project((Seq<NamedExpression>) (Seq<?>) node.output(), node)
        : null;
  }

  private static boolean isInScript() {
    if (Classes.SCRIPT_CONTEXT) {
      return SqlScriptingContextManager.get().isDefined();
    }
    try {
      return ((Option<?>) Class.forName(FORMER_CONTEXT).getMethod("get").invoke(null)).isDefined();
    } catch (ReflectiveOperationException unknown) {
      return false;
    }
  }
}
