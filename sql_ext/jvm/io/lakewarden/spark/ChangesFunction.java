package io.lakewarden.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
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

/**
 * Functions whose rows are those of a table: `table_changes(table, since [, until [, mode]])`, and by
 * Hudi's names `hudi_table_changes(table, mode, begin [, end])` and `hudi_query(table, mode)`; and Hudi's
 * functions of the state of a table.
 */
final class ChangesFunction extends AbstractFunction1<Seq<Expression>, LogicalPlan> {
  static final String NAME = "table_changes";
  private static final String MODE = "mode";
  private static final String HUDI_CHANGES = "hudi_table_changes";
  private static final String HUDI_QUERY = "hudi_query";
  /** Functions of the state of a table, whose rows Python makes. */
  private static final Map<String, List<String>> OF_STATE =
      Map.of(
          "hudi_query_timeline", List.of("table", "archived"),
          "hudi_filesystem_view", List.of("table", "partitions"),
          "hudi_metadata", List.of("table"));
  private static final Map<String, List<String>> PARAMETERS = new HashMap<>(OF_STATE);

  static {
    PARAMETERS.put(NAME, List.of("table", "since", "until", MODE));
    PARAMETERS.put(HUDI_CHANGES, List.of("table", MODE, "since", "until"));
    PARAMETERS.put(HUDI_QUERY, List.of("table", MODE));
  }

  private static final String LATEST = "latest_state";
  private static final String CDC = "cdc";
  private static final String CHANGES_MODE = "hoodie.datasource.query.incremental.format";

  private final String name;

  private ChangesFunction(String name) {
    this.name = name;
  }

  static void inject(SparkSessionExtensions extensions) {
    for (String name : names()) {
      extensions.injectTableFunction(
          new Tuple3<FunctionIdentifier, ExpressionInfo, Function1<Seq<Expression>, LogicalPlan>>(
              new FunctionIdentifier(name), info(name), new ChangesFunction(name)));
    }
  }

  /** Hudi's bundle brings those that have its name. */
  private static Set<String> names() {
    return TableRelations.hudiIsThere() ? Set.of(NAME) : PARAMETERS.keySet();
  }

  /** For a session that is there; since 4.3 its registry wants to know whose a function is. */
  static void register(SparkSession session) {
    TableFunctionRegistry registry = session.sessionState().tableFunctionRegistry();
    for (String name : names()) {
      try {
        registry.registerFunction(
            new FunctionIdentifier(name), info(name), new ChangesFunction(name));
      } catch (AssertionError wantsOwner) {
        FunctionIdentifier owned =
            new FunctionIdentifier(name, Option.apply("session"), Option.apply("system"));
        registry.registerFunction(owned, info(name), new ChangesFunction(name));
      }
    }
  }

  private static ExpressionInfo info(String name) {
    return new ExpressionInfo(ChangesFunction.class.getName(), null, name);
  }

  @Override
  public LogicalPlan apply(Seq<Expression> arguments) {
    List<String> parameters = PARAMETERS.get(name);
    Map<String, String> given = new HashMap<>();
    int place = 0;
    for (Expression argument : CollectionConverters.asJava(arguments)) {
      if (argument instanceof NamedArgumentExpression named) {
        put(given, named.key().toLowerCase(Locale.ROOT), named.value());
      } else {
        put(given, place < parameters.size() ? parameters.get(place++) : "", argument);
      }
    }
    boolean isOfState = OF_STATE.containsKey(name);
    List<String> needed =
        isOfState
            ? List.of("table")
            : name.equals(HUDI_QUERY) ? parameters : List.of("table", "since");
    if (!given.keySet().containsAll(needed)) {
      throw wrong("An argument of " + name + " is missing.");
    }
    String table = given.remove("table");
    if (isOfState) {
      return state(table, given.isEmpty() ? "" : given.values().iterator().next());
    }
    if (!name.equals(HUDI_QUERY)) {
      String mode = given.getOrDefault(MODE, LATEST).toLowerCase(Locale.ROOT);
      if (!mode.equals(LATEST) && !mode.equals(CDC)) {
        throw wrong("There is no mode " + mode + " of " + name + ".");
      }
      given.remove(MODE);
      given.put(CHANGES_MODE, mode);
    }
    if (name.equals(HUDI_CHANGES)) {
      if (given.get("since").equalsIgnoreCase("earliest")) {
        given.put("since", "0");
      }
    }
    return relation(table, given);
  }

  private LogicalPlan state(String table, String argument) {
    long place = PlanRegistry.number();
    PythonBridge.ask(
        "hudi_relation",
        "function", name,
        "table", table,
        "argument", argument,
        "place", place,
        "settings", Statement.settings(),
        "permissions", Statement.permissions());
    return (LogicalPlan) PlanRegistry.take(place);
  }

  private LogicalPlan relation(String table, Map<String, String> options) {
    SparkSession session = SparkSession.active();
    if (table.contains("/")) {
      return new TableRelations.Found(LakeTable.open(table, options, LakeTable.Role.READ), null, null).relation();
    }
    List<String> parts = parts(session, table);
    TableRelations.Found found = new TableRelations(session).found(parts, options, LakeTable.Role.READ);
    if (found == null) {
      throw LakewardenException.of(
          "NO_TABLE",
          "42P01",
          "There is no table " + table + " of the format lakewarden.",
          name + " takes the name of such a table, or the path of a Hudi table.",
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

  private void put(Map<String, String> given, String parameter, Expression value) {
    if (!PARAMETERS.get(name).contains(parameter)) {
      throw wrong(
          parameter.isEmpty()
              ? name + " takes " + PARAMETERS.get(name).size() + " arguments."
              : "There is no argument " + parameter + ".");
    }
    if (given.containsKey(parameter)) {
      throw wrong("The argument " + parameter + " is given twice.");
    }
    if (!value.foldable()) {
      throw wrong("The argument " + parameter + " is not a constant.");
    }
    Object constant = value.eval(InternalRow.empty());
    if (constant != null) {
      given.put(parameter, constant.toString());
    } else if (!Set.of("until", MODE).contains(parameter)) {
      throw wrong("The argument " + parameter + " is NULL.");
    }
  }

  private RuntimeException wrong(String what) {
    String form =
        switch (name) {
          case HUDI_QUERY -> "(table, mode): a name or path, and snapshot or read_optimized.";
          case HUDI_CHANGES ->
              "(table, mode, begin [, end]): a name or path, latest_state or cdc, and instants as"
                  + " texts.";
          case "hudi_query_timeline" -> "(table [, archived]): a name or path, and 'true'.";
          case "hudi_filesystem_view" ->
              "(table [, partitions]): a name or path, and a pattern of partition paths.";
          case "hudi_metadata" -> "(table): a name or path.";
          default ->
              "(table, since [, until [, mode]]): a name or path, instants as texts, and"
                  + " latest_state or cdc.";
        };
    String example =
        switch (name) {
          case HUDI_QUERY -> "('db.orders', 'snapshot').";
          case HUDI_CHANGES -> "('db.orders', 'latest_state', 'earliest').";
          case "hudi_query_timeline", "hudi_filesystem_view", "hudi_metadata" -> "('db.orders').";
          default -> "('db.orders', '20261118101500123').";
        };
    return LakewardenException.of(
        "BAD_ARGUMENT",
        "22023",
        what,
        "It is " + name + form,
        "For example: SELECT * FROM " + name + example);
  }
}
