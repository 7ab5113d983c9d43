package io.lakewarden.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Our parser around another one. */
final class Parsers {
  private Parsers() {}

  static ParserInterface around(SparkSession session, ParserInterface next) {
    return next instanceof RewritingParser ? next : new FormerParser(session, next);
  }
}
