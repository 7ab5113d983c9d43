package io.lakewarden.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function1;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** `table_changes(table, since [, until])`: the rows that later commits have written. */
final class ChangesFunction extends AbstractFunction1<Seq<Expression>, LogicalPlan> {
  static final String NAME = "table_changes";
  private static final List<String> PARAMETERS = List.of("table", "since", "until");

  static void inject(SparkSessionExtensions extensions) {
    extensions.injectTableFunction(
        new Tuple3<FunctionIdentifier, ExpressionInfo, Function1<Seq<Expression>, LogicalPlan>>(
            new FunctionIdentifier(NAME), info(), new ChangesFunction()));
  }

  /** For a session that is there; since 4.3 its registry wants to know whose a function is. */
  static void register(SparkSession session) {
    TableFunctionRegistry registry = session.sessionState().tableFunctionRegistry();
    try {
      registry.registerFunction(new FunctionIdentifier(NAME), info(), new ChangesFunction());
    } catch (AssertionError wantsOwner) {
      FunctionIdentifier owned =
          new FunctionIdentifier(NAME, Option.apply("session"), Option.apply("system"));
      registry.registerFunction(owned, info(), new ChangesFunction());
    }
  }

  private static ExpressionInfo info() {
    return new ExpressionInfo(ChangesFunction.class.getName(), null, NAME);
  }

  @Override
  public LogicalPlan apply(Seq<Expression> arguments) {
    Map<String, String> given = new HashMap<>();
    int place = 0;
    for (Expression argument : CollectionConverters.asJava(arguments)) {
      if (argument instanceof NamedArgumentExpression named) {
        put(given, named.key().toLowerCase(java.util.Locale.ROOT), named.value());
      } else {
        put(given, place < PARAMETERS.size() ? PARAMETERS.get(place++) : "", argument);
      }
    }
    if (!given.containsKey("table") || !given.containsKey("since")) {
      throw wrong("An argument of " + NAME + " is missing.");
    }
    Map<String, String> options = new HashMap<>(Map.of("since", given.get("since")));
    if (given.containsKey("until")) {
      options.put("until", given.get("until"));
    }
    return relation(given.get("table"), options);
  }

  private static LogicalPlan relation(String table, Map<String, String> options) {
    SparkSession session = SparkSession.active();
    if (table.contains("/")) {
      return new TableRelations.Found(LakeTable.open(table, options, LakeTable.Role.READ), null, null).relation();
    }
    List<String> name = parts(session, table);
    TableRelations.Found found = new TableRelations(session).found(name, options, LakeTable.Role.READ);
    if (found == null) {
      throw LakewardenException.of(
          "NO_TABLE",
          "42P01",
          "There is no table " + table + " of the format lakewarden.",
          NAME + " takes the name of such a table, or the path of a Hudi table.",
          "Look it up with SHOW TABLES.");
    }
    return found.relation();
  }

  private static List<String> parts(SparkSession session, String table) {
    try {
      return CollectionConverters.asJava(
          session.sessionState().sqlParser().parseMultipartIdentifier(table));
    } catch (ParseException bad) {
      throw LakewardenException.rethrow(bad);
    }
  }

  private static void put(Map<String, String> given, String name, Expression value) {
    if (!PARAMETERS.contains(name)) {
      throw wrong(name.isEmpty() ? NAME + " takes three arguments." : "There is no argument " + name + ".");
    }
    if (given.containsKey(name)) {
      throw wrong("The argument " + name + " is given twice.");
    }
    if (!value.foldable()) {
      throw wrong("The argument " + name + " is not a constant.");
    }
    Object constant = value.eval(InternalRow.empty());
    if (constant != null) {
      given.put(name, constant.toString());
    } else if (!name.equals("until")) {
      throw wrong("The argument " + name + " is NULL.");
    }
  }

  private static RuntimeException wrong(String what) {
    return LakewardenException.of(
        "BAD_ARGUMENT",
        "22023",
        what,
        "It is " + NAME + "(table, since [, until]): a name or path, and instants as texts.",
        "For example: SELECT * FROM " + NAME + "('db.orders', '20261118101500123').");
  }
}
