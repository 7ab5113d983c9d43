package io.lakewarden.spark;

import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDTF;
import org.apache.spark.sql.catalyst.expressions.VariableReference;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Looks at the table that a table function is given, as soon as it is known which one that is; what
 * is wrong with it is an error of the statement then, and not of a worker.
 */
class NamedTables extends PlanRule {
  private static final String PREFIX = "lakewarden_";
  private static final Set<String> PARAMETERS = Set.of("path", "table");

  NamedTables(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (!(node instanceof Generate generate)
        || !(generate.generator() instanceof PythonUDTF function)
        || !function.name().toLowerCase(Locale.ROOT).startsWith(PREFIX)) {
      return null;
    }
    List<Expression> given = CollectionConverters.asJava(function.children());
    Expression argument = given.size() == 1 ? value(given.get(0)) : null;
    if (argument == null) {
      throw LakewardenException.at(
          function.origin(),
          "BAD_ARGUMENT",
          "42605",
          function.name() + " takes one argument.",
          "It shows the state of one table.",
          "Give the name or the path of a table.");
    }
    Object known = constant(argument);
    return known == null
        ? unknown(generate, function, argument)
        : known(generate, function, known.toString());
  }

  /** What replaces a function whose tables are named by rows; null to leave it. */
  protected LogicalPlan unknown(Generate generate, PythonUDTF function, Expression argument) {
    return null;
  }

  /** What takes the place of a function of a known table; null to leave it. */
  protected LogicalPlan known(Generate generate, PythonUDTF function, String table) {
    path(table);
    return null;
  }

  /** Where a table is, by its name or path; an error if there is none. */
  static String path(String table) {
    return (String)
        PythonBridge.ask(
            "path_of",
            "table", table,
            "settings", Statement.settings(),
            "permissions", Statement.permissions());
  }

  /** An argument's value, under whichever name it is given; null under a wrong one. */
  private static Expression value(Expression argument) {
    if (!(argument instanceof NamedArgumentExpression named)) {
      return argument;
    }
    return PARAMETERS.contains(named.key().toLowerCase(Locale.ROOT)) ? named.value() : null;
  }

  /** What an argument is worth, where that is known without any row; null otherwise. */
  private static Object constant(Expression argument) {
    boolean isKnown = argument instanceof Literal || argument instanceof VariableReference;
    return isKnown ? argument.eval(InternalRow.empty()) : null;
  }
}
