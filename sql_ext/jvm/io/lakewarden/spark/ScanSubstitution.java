package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.optimizer.CollapseProject$;
import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Puts the scan of a table in the place of what stands for it.
 *
 * <p>This happens when Spark has moved filters and columns as close to the table as it can, and
 * before it looks at sizes: the engine skips files by those filters, and Spark continues with a
 * Parquet scan of its own. The filters stay in the plan; the engine only has to be no stricter.
 */
final class ScanSubstitution extends PlanRule {
  ScanSubstitution(SparkSession session) {
    super(session);
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transformDown(replacing());
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    Option<Tuple3<Seq<NamedExpression>, Seq<Expression>, LogicalPlan>> operation =
        PhysicalOperation$.MODULE$.unapply(node);
    if (operation.isEmpty()) {
      return null;
    }
    LogicalPlan relation = operation.get()._3();
    LakeTable table = LakeRelations.tableOf(relation);
    if (table == null) {
      return null;
    }
    Seq<NamedExpression> columns = operation.get()._1();
    List<Expression> filters = CollectionConverters.asJava(operation.get()._2());
    LogicalPlan scan = scan(table, needed(relation, columns, filters), filters);
    for (Expression filter : filters) {
      scan = new Filter(filter, scan);
    }
    LogicalPlan whole = new Project(columns, scan);
    return CollapseProject$.MODULE$.apply(PushDownPredicates$.MODULE$.apply(whole));
  }

  /** The column that an attribute's values come from. */
  private static String source(Attribute attribute) {
    String name = attribute.name();
    boolean isOriginal = name.startsWith(LakeTable.ORIGINAL);
    return isOriginal ? name.substring(LakeTable.ORIGINAL.length()) : name;
  }

  private static List<Attribute> needed(
      LogicalPlan relation, Seq<NamedExpression> columns, List<Expression> filters) {
    List<AttributeSet> used = new ArrayList<>();
    CollectionConverters.asJava(columns).forEach(column -> used.add(((Expression) column).references()));
    filters.forEach(filter -> used.add(filter.references()));
    List<Attribute> needed = new ArrayList<>();
    for (Attribute attribute : CollectionConverters.asJava(relation.output())) {
      if (used.stream().anyMatch(set -> set.contains(attribute))) {
        needed.add(attribute);
      }
    }
    return needed;
  }

  /** The engine's plan for some columns, under the names that the rest of the plan has for them. */
  private static LogicalPlan scan(
      LakeTable table, List<Attribute> needed, List<Expression> filters) {
    long place = PlanRegistry.number();
    PythonBridge.ask(
        "scan_table",
        "path", table.path(),
        "options", table.options(),
        "moment", table.moment(),
        "columns", new ArrayList<>(needed.stream().map(ScanSubstitution::source).toList()),
        "conditions", Skipping.conditions(filters),
        "place", place);
    LogicalPlan scan = (LogicalPlan) PlanRegistry.take(place);
    List<Attribute> found = CollectionConverters.asJava(scan.output());
    List<NamedExpression> renamed = new ArrayList<>();
    for (int i = 0; i < needed.size(); i++) {
      Attribute wanted = needed.get(i);
      renamed.add(
          new Alias(
              found.get(i),
              wanted.name(),
              wanted.exprId(),
              wanted.qualifier(),
              Option.empty(),
              (Seq<String>) (Seq<?>) Nil$.MODULE$));
    }
    return new Project(CollectionConverters.asScala(renamed).toSeq(), scan);
  }
}
