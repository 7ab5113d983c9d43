package org.apache.spark.sql.catalyst.parser;

import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** What a parser had to have in Spark 4.0; compiled against, and not put into the jar. */
public interface ParserInterface extends DataTypeParserInterface {
  LogicalPlan parsePlan(String text) throws ParseException;

  LogicalPlan parseQuery(String text) throws ParseException;

  Expression parseExpression(String text) throws ParseException;

  TableIdentifier parseTableIdentifier(String text) throws ParseException;

  FunctionIdentifier parseFunctionIdentifier(String text) throws ParseException;

  Seq<String> parseMultipartIdentifier(String text) throws ParseException;

  StructType parseRoutineParam(String text) throws ParseException;
}
