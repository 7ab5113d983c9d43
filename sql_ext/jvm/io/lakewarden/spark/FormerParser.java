package io.lakewarden.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;

/** For the interface of Spark 4.0, whose grammar lacks some statements about procedures. */
final class FormerParser extends RewritingParser {
  FormerParser(SparkSession session, ParserInterface next) {
    super(session, next);
  }

  @Override
  LogicalPlan parsed(String text) throws ParseException {
    return FormerStatements.parsed(next, text, false);
  }

  @Override
  public StructType parseRoutineParam(String text) throws ParseException {
    return next.parseRoutineParam(text);
  }
}
