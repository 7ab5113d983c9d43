package io.lakewarden.spark;

import java.util.Arrays;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/**
 * Which of our parsers fits this Spark. There is one class for each shape of Spark's interface:
 * py4j looks through all methods of a class, and fails on one whose types this Spark does not have.
 */
final class Parsers {
  private Parsers() {}

  static ParserInterface around(SparkSession session, ParserInterface next) {
    if (next instanceof RewritingParser) {
      return next;
    }
    if (has("splitStatements")) {
      return new SplittingParser(session, next);
    }
    boolean hasParameters = has("parsePlanWithParameters");
    return hasParameters ? new PlainParser(session, next) : new FormerParser(session, next);
  }

  private static boolean has(String name) {
    return Arrays.stream(ParserInterface.class.getMethods())
        .anyMatch(method -> method.getName().equals(name));
  }
}
