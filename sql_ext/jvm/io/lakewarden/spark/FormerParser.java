package io.lakewarden.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** For the interface of Spark 4.0. */
final class FormerParser extends RewritingParser {
  FormerParser(SparkSession session, ParserInterface next) {
    super(session, next);
  }
}
