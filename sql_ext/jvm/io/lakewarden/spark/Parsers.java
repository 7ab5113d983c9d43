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
    boolean splits =
        Arrays.stream(ParserInterface.class.getMethods())
            .anyMatch(method -> method.getName().equals("splitStatements"));
    return splits ? new SplittingParser(session, next) : new PlainParser(session, next);
  }
}
