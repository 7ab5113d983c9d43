package io.lakewarden.spark;

import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.command.ExplainCommand;
import scala.collection.immutable.Seq;

/** Statements about procedures that Sparks before 4.1 have no grammar for. */
final class FormerStatements {
  private static final Pattern EXPLAIN =
      pattern("EXPLAIN\\s+(?:EXTENDED\\s+|CODEGEN\\s+|COST\\s+|FORMATTED\\s+)?(?=CALL\\b)");
  private static final Pattern CALL = pattern("CALL\\b");
  private static final Pattern SHOW =
      pattern("SHOW\\s+PROCEDURES(?:\\s+(?:IN|FROM)\\s+[\\w`.]+)?[\\s;]*$");
  private static final Pattern DESCRIBE =
      pattern("DESC(?:RIBE)?\\s+PROCEDURE\\s+(?:[\\w`]+\\.)*`?(\\w+)`?[\\s;]*$");

  private FormerStatements() {}

  private static Pattern pattern(String text) {
    return Pattern.compile(text, Pattern.CASE_INSENSITIVE);
  }

  /** The plan of a text, ours or Spark's; calls are ours where Spark has none. */
  static LogicalPlan parsed(ParserInterface next, String text, boolean takesCalls)
      throws ParseException {
    int start = StatementHead.afterBlanks(text);
    Matcher head = EXPLAIN.matcher(text).region(start, text.length());
    if (takesCalls && head.lookingAt()) {
      // Spark's own words say how to explain.
      ExplainCommand explain = (ExplainCommand) next.parsePlan(head.group() + "SELECT 1");
      return new ExplainCommand(call(next, text, start, head.end()), explain.mode());
    }
    if (takesCalls && head.usePattern(CALL).lookingAt()) {
      return call(next, text, start, start);
    }
    if (head.usePattern(SHOW).lookingAt()) {
      return next.parsePlan(shown());
    }
    return head.usePattern(DESCRIBE).lookingAt()
        ? next.parsePlan(described(Declarations.named(head.group(1))))
        : next.parsePlan(text);
  }

  /** A call has the form of a function; blanks in front keep the places of its words. */
  private static LogicalPlan call(ParserInterface next, String text, int start, int word)
      throws ParseException {
    int end = word + "CALL".length();
    String blanks = text.substring(start, end).replaceAll("\\S", " ");
    String form = text.substring(0, start) + blanks + text.substring(end);
    Expression found = next.parseExpression(form.replaceFirst("[\\s;]+$", ""));
    return found instanceof UnresolvedFunction function && isOurs(function.nameParts())
        ? new FormerCall(function.nameParts().last(), function.arguments())
        : next.parsePlan(text);
  }

  /** Whether a name is that of no other catalog, whose procedures are its own extension's. */
  private static boolean isOurs(Seq<String> name) {
    String first = name.head();
    return name.size() < 3 || first.equals(Procedures.CATALOG) || !Catalogs.isCatalog(first);
  }

  private static String shown() {
    StringBuilder rows = new StringBuilder();
    Set<String> names = Declarations.names();
    for (String name : names) {
      rows.append(rows.isEmpty() ? "" : ", ").append(quoted(name));
    }
    String catalog = quoted(Procedures.CATALOG) + " AS catalog, ";
    String namespace = quoted(Procedures.NAMESPACE);
    return "SELECT "
        + catalog
        + "array(" + namespace + ") AS namespace, "
        + namespace + " AS schema, "
        + "explode(array(" + rows + ")) AS procedure_name";
  }

  private static String described(Declarations.Declaration procedure) {
    String name = quoted("Procedure:   " + procedure.name);
    String description = quoted("Description: " + procedure.description);
    return "SELECT explode(array(" + name + ", " + description + ")) AS procedure_desc";
  }

  private static String quoted(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }
}
