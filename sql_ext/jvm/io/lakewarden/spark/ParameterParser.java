package io.lakewarden.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;

/** What parsers have from Spark 4.1 on: parameters reach a statement before it is parsed. */
abstract class ParameterParser extends RewritingParser {
  ParameterParser(SparkSession session, ParserInterface next) {
    super(session, next);
  }

  @Override
  public LogicalPlan parsePlanWithParameters(String statement, ParameterContext parameters)
      throws ParseException {
    try {
      return qualified(next.parsePlanWithParameters(rewritten(statement), parameters));
    } catch (ParseException error) {
      throw LakewardenException.raise(error);
    }
  }

  @Override
  public StructType parseRoutineParam(String text) throws ParseException {
    return next.parseRoutineParam(text);
  }
}
