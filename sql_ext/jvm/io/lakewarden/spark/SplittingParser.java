package io.lakewarden.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.parser.SqlStatementSplitResult;

/** For the interface of Spark 4.3, which also splits a text into statements. */
final class SplittingParser extends ParameterParser {
  SplittingParser(SparkSession session, ParserInterface next) {
    super(session, next);
  }

  @Override
  public SqlStatementSplitResult splitStatements(String text) {
    return next.splitStatements(text);
  }
}
