package io.lakewarden.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** For the interface of Spark 3.5, whose grammar lacks all statements about procedures. */
final class FormerParser extends RewritingParser {
  private final SparkSession session;

  FormerParser(SparkSession session, ParserInterface next) {
    super(session, next);
    this.session = session;
  }

  @Override
  LogicalPlan parsed(String text) throws ParseException {
    try {
      FirstRules.into(session, TableRules.FIRST);
    } catch (ReflectiveOperationException impossible) {
      throw new IllegalStateException(impossible);
    }
    return FormerStatements.parsed(next, text, true);
  }
}
