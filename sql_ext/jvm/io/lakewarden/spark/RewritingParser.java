package io.lakewarden.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** A parser that has our statements rewritten to calls, and leaves the rest to the one behind it. */
abstract class RewritingParser implements ParserInterface {
  final ParserInterface next;
  private final QualifiedProcedures procedures;

  RewritingParser(SparkSession session, ParserInterface next) {
    this.next = next;
    this.procedures = new QualifiedProcedures(session);
  }

  static String rewritten(String statement) {
    if (!StatementHead.mayBeOurs(statement)) {
      return statement;
    }
    return (String) PythonBridge.ask("rewrite", "statement", statement, "has_hudi", hasHudi());
  }

  /** A plan with the full names of our procedures. */
  final LogicalPlan qualified(LogicalPlan plan) {
    return procedures.in(plan);
  }

  /** The plan of a text that Spark has a grammar for. */
  LogicalPlan parsed(String text) throws ParseException {
    return next.parsePlan(text);
  }

  /** Whether Hudi's own extension is there, too: its tables are its business then. */
  private static boolean hasHudi() {
    return SQLConf.get().getConfString("spark.sql.extensions", "").contains("org.apache.spark.sql.hudi");
  }

  @Override
  public LogicalPlan parsePlan(String statement) throws ParseException {
    try {
      return qualified(parsed(rewritten(statement)));
    } catch (ParseException error) {
      throw LakewardenException.raise(error);
    }
  }

  @Override
  public LogicalPlan parseQuery(String text) throws ParseException {
    return next.parseQuery(text);
  }

  @Override
  public Expression parseExpression(String text) throws ParseException {
    return next.parseExpression(text);
  }

  @Override
  public TableIdentifier parseTableIdentifier(String text) throws ParseException {
    return next.parseTableIdentifier(text);
  }

  @Override
  public FunctionIdentifier parseFunctionIdentifier(String text) throws ParseException {
    return next.parseFunctionIdentifier(text);
  }

  @Override
  public Seq<String> parseMultipartIdentifier(String text) throws ParseException {
    return next.parseMultipartIdentifier(text);
  }

  @Override
  public StructType parseTableSchema(String text) throws ParseException {
    return next.parseTableSchema(text);
  }

  @Override
  public DataType parseDataType(String text) throws ParseException {
    return next.parseDataType(text);
  }
}
