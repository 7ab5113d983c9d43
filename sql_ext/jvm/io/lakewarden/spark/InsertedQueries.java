package io.lakewarden.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/** INSERT ... SELECT * from a Hudi table: what Hudi has in front of its rows is not inserted. */
final class InsertedQueries extends PlanRule {
  InsertedQueries(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (!(node instanceof InsertIntoStatement insert) || !insert.query().resolved()) {
      return null;
    }
    LakeTable table = LakeRelations.targetOf(insert.table());
    List<Attribute> output = CollectionConverters.asJava(insert.query().output());
    if (table == null || !table.beginsWithMetaColumns(output)) {
      return null;
    }
    List<NamedExpression> own =
        output.stream().skip(LakeTable.META_COLUMNS).map(one -> (NamedExpression) one).toList();
    LogicalPlan query =
        new Project(CollectionConverters.asScala(own).toSeq(), insert.query());
    return TableRelations.withPart(insert, insert.query(), query);
  }
}
