package io.lakewarden.spark;

import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDTF;
import org.apache.spark.sql.catalyst.expressions.VariableReference;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Looks at the table that a table function is given, and puts its path in the place of its name:
 * functions run in workers, which have no catalog. Names in a column stay what they are.
 */
final class NamedTables extends PlanRule {
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
          "It tells the state of one table.",
          "Give the name or the path of a table.");
    }
    Object known = constant(argument);
    if (known == null) {
      return null;
    }
    Object path =
        Door.ask(
            "path_of",
            "table", known.toString(),
            "settings", Statement.settings(),
            "permissions", Statement.permissions());
    Seq<Expression> located = CollectionConverters.asScala(List.<Expression>of(Literal$.MODULE$.apply(path))).toSeq();
    return known.equals(path) ? null : TableRelations.withPart(generate, function, (Expression) function.withNewChildren(located));
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
