package io.lakewarden.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** For the interface of Spark 4.1 and 4.2. */
final class PlainParser extends ParameterParser {
  PlainParser(SparkSession session, ParserInterface next) {
    super(session, next);
  }
}
