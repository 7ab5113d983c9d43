package io.lakewarden.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;
import scala.Option;

/** VERSION AS OF an instant, TIMESTAMP AS OF a time: the table as it was then. */
final class TimeTravels extends PlanRule {
  TimeTravels(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (!(node instanceof RelationTimeTravel travel)
        || !(travel.relation() instanceof SubqueryAlias named)
        || !(named.child() instanceof DataSourceV2Relation relation)
        || !(relation.table() instanceof LakeTable table)) {
      return null;
    }
    String moment = travel.version().isDefined() ? travel.version().get() : null;
    if (moment == null) {
      Expression time = travel.timestamp().get();
      if (!time.resolved() || SubqueryExpression$.MODULE$.hasSubquery(time)) {
        return null;
      }
      moment = moment(time);
    }
    Map<String, String> options = new HashMap<>(table.options());
    options.put("as_of", moment);
    LakeTable then = LakeTable.open(table.path(), options, LakeTable.Role.READ);
    LogicalPlan past = DataSourceV2Relation.create(then, relation.catalog(), relation.identifier());
    return new SubqueryAlias(named.identifier(), past);
  }

  /** A text as it is, as Hudi takes it: an instant, or a time in the table's zone. */
  private String moment(Expression time) {
    if (!time.foldable()) {
      throw LakewardenException.of(
          "BAD_TIME",
          "22007",
          "The time of a time travel is not a constant.",
          "A table is read at one time, the same for all rows.",
          "Write a timestamp, a text or an expression of constants.");
    }
    Expression known = atThisTime(time);
    Object value = known.eval(InternalRow.empty());
    if (value == null) {
      throw LakewardenException.of(
          "BAD_TIME",
          "22007",
          "The time of a time travel is NULL.",
          "Time travel needs an instant or a timestamp.",
          "Write an instant such as '20261118101500123', or a timestamp.");
    }
    if (time.dataType() instanceof StringType) {
      return value.toString();
    }
    Option<String> zone = Option.apply(session.sessionState().conf().sessionLocalTimeZone());
    Cast cast = Cast$.MODULE$.apply(known, DataTypes.TimestampType, zone, true);
    return "micros:" + cast.eval(InternalRow.empty());
  }

  /** The same with the time of the statement in the place of now(), as Spark's optimiser puts it. */
  private static Expression atThisTime(Expression time) {
    LogicalPlan row =
        new Project(TableWrite.one(WriteStatements.alias(time, "time")), new OneRowRelation());
    Project known = (Project) ComputeCurrentTime$.MODULE$.apply(row);
    return ((Alias) known.projectList().head()).child();
  }
}
