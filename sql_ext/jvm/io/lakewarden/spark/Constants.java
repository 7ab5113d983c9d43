package io.lakewarden.spark;

import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.LambdaFunction;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Says of an argument that it is no constant. Spark would say so of names only, and of all else
 * without a place and a condition. What can be made a constant is one when a plan is optimised, and
 * a call is optimised before it runs.
 */
final class Constants {
  private Constants() {}

  /** Refuse what can be no constant, and what is none when everything is known. */
  static void check(String procedure, Expression argument, boolean allIsKnown) {
    Expression value = value(argument);
    Expression stranger = stranger(value);
    if (stranger != null) {
      boolean isName = stranger instanceof UnresolvedAttribute;
      String now = isName ? "Write a text in quotes: '" + text(stranger) + "'." : "Write a value.";
      throw noConstant(procedure, stranger, now);
    }
    if (allIsKnown && !value.foldable()) {
      String now =
          Classes.VARIABLES
              ? "Give it to a variable by DECLARE and SET VAR, and the variable to the call."
              : "Write a value.";
      throw noConstant(procedure, value, now);
    }
  }

  /** What an argument gives, under a name or without one. */
  static Expression value(Expression argument) {
    Expression value = argument instanceof NamedArgumentExpression named ? named.value() : argument;
    return value instanceof Alias named ? named.child() : value;
  }

  /** What stands for no value at all: a name that nothing has, a function of a higher order. */
  private static Expression stranger(Expression value) {
    if (value.resolved()) {
      return null;
    }
    if (value instanceof UnresolvedAttribute || value instanceof LambdaFunction) {
      return value;
    }
    List<Expression> children = CollectionConverters.asJava(value.children());
    return children.stream()
        .map(Constants::stranger)
        .filter(Objects::nonNull)
        .findFirst()
        .orElse(null);
  }

  private static RuntimeException noConstant(String procedure, Expression value, String now) {
    return LakewardenException.at(
        value.origin(),
        "ARGUMENT_NOT_CONSTANT",
        "42K08",
        "An argument of " + procedure + " is no constant: " + text(value) + ".",
        "A call runs once, with values that are known before any row is read.",
        now);
  }

  private static String text(Expression value) {
    Origin origin = value.origin();
    if (origin.sqlText().isEmpty() || origin.startIndex().isEmpty() || origin.stopIndex().isEmpty()) {
      return value.sql();
    }
    int begin = (Integer) origin.startIndex().get();
    return origin.sqlText().get().substring(begin, (Integer) origin.stopIndex().get() + 1);
  }
}
