package io.lakewarden.spark;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.PythonUDTF;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.classic.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Puts the rows of a table function in its place, where it is known which table they are about.
 *
 * <p>No worker is asked then, which knows neither the catalog nor what its entries say of storages.
 * Paths in a column stay with the workers; what these fail with is thrown here.
 */
final class FunctionRows extends NamedTables {
  FunctionRows(SparkSession session) {
    super(session);
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transformUp(replacing());
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    boolean isDone =
        node instanceof Generate generate
            && generate.generator() instanceof PythonUDTF function
            && WorkerErrors.areReported(function);
    return isDone ? null : super.instead(node);
  }

  @Override
  protected LogicalPlan unknown(Generate generate, PythonUDTF function, Expression argument) {
    return WorkerErrors.thrown(generate, function, argument);
  }

  @Override
  protected LogicalPlan known(Generate generate, PythonUDTF function, String table) {
    if (!(generate.child() instanceof OneRowRelation)) {
      // Workers have no catalog to look names up in.
      return unknown(generate, function, Literal$.MODULE$.apply(path(table)));
    }
    List<?> rows =
        (List<?>)
            PythonBridge.ask(
                "function_rows",
                "function", function.name(),
                "table", table,
                "settings", Statement.settings(),
                "permissions", Statement.permissions());
    Object scala = CollectionConverters.asScala(Values.rows(function.elementSchema(), rows)).toSeq();
    return (LogicalPlan)
        CatalogEntries.filled(
            CatalogEntries.singleton(LocalRelation.class, null),
            "apply",
            Map.of(0, generate.generatorOutput(), 1, scala));
  }
}
