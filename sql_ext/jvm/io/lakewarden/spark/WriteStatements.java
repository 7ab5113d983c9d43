package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.util.RowDeltaUtils$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Takes over what writes to a table of ours, when Spark has resolved it: names, types, casts, and
 * what becomes of each row are Spark's; how the rows get into the table is the engine's.
 */
final class WriteStatements extends PlanRule {
  static final String OPERATION = "__operation";

  WriteStatements(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (!node.resolved()) {
      return null;
    }
    if (node instanceof WriteDelta delta) {
      return changed(delta);
    }
    if (!(node instanceof V2WriteCommand write)) {
      return null;
    }
    // Not by its accessor, whose type is another one in each release.
    LakeTable table = LakeRelations.targetOf(node.productElement(0));
    if (table == null) {
      return null;
    }
    if (table.isMerged()) {
      // A MERGE that only inserts; its rows are not to be there twice.
      LogicalPlan query = NewestRows.of(write.query(), table);
      return new TableWrite("merge", table, inserted(query), Map.of());
    }
    if (node instanceof AppendData append) {
      return taken("append", table, write, append.writeOptions());
    }
    if (node instanceof OverwritePartitionsDynamic overwrite) {
      return taken("overwrite_partitions", table, write, overwrite.writeOptions());
    }
    return node instanceof OverwriteByExpression overwrite ? overwritten(table, overwrite) : null;
  }

  private static TableWrite taken(
      String kind,
      LakeTable table,
      V2WriteCommand write,
      scala.collection.immutable.Map<String, String> options) {
    return new TableWrite(kind, table, write.query(), CollectionConverters.asJava(options));
  }

  private static LogicalPlan overwritten(LakeTable table, OverwriteByExpression overwrite) {
    List<Object> conditions = new ArrayList<>();
    if (!collect(overwrite.deleteExpr(), conditions)) {
      throw LakewardenException.of(
          "UNSUPPORTED_OVERWRITE",
          "0A000",
          "Rows can't be overwritten where " + overwrite.deleteExpr().sql() + ".",
          "Only partitions, named by the values of their columns, are replaced as a whole.",
          "Use DELETE and INSERT, or MERGE.");
    }
    TableWrite statement = taken("overwrite", table, overwrite, overwrite.writeOptions());
    return conditions.isEmpty() ? statement : statement.with("partition", conditions);
  }

  /** Whether a condition is only about values of columns; they are put into the list. */
  private static boolean collect(Expression condition, List<Object> conditions) {
    if (condition instanceof Literal literal) {
      return Boolean.TRUE.equals(literal.value());
    }
    if (condition instanceof And both) {
      return collect(both.left(), conditions) && collect(both.right(), conditions);
    }
    Expression column = null;
    Expression value = null;
    if (condition instanceof EqualNullSafe equal) {
      column = equal.left();
      value = equal.right();
    } else if (condition instanceof EqualTo equal) {
      column = equal.left();
      value = equal.right();
    }
    if (!(column instanceof Attribute attribute) || !value.foldable()) {
      return false;
    }
    List<Object> said = Skipping.equal(attribute, value.eval(InternalRow.empty()));
    return said != null && conditions.add(said);
  }

  private static LogicalPlan changed(WriteDelta delta) {
    LakeTable table = LakeRelations.targetOf(delta.productElement(0));
    if (table == null) {
      return null;
    }
    String kind = delta.operation().command().name().toLowerCase(Locale.ROOT);
    LogicalPlan rows = described(delta);
    return new TableWrite(
        kind, table, table.isMerged() ? NewestRows.of(rows, table) : rows, Map.of());
  }

  /** The rows of a change: the operation, the row as it shall be, and what identified it before. */
  private static LogicalPlan described(WriteDelta delta) {
    LogicalPlan query = delta.query();
    List<Attribute> output = CollectionConverters.asJava(query.output());
    List<NamedExpression> columns = new ArrayList<>();
    columns.add(alias(output.get(0), OPERATION));
    if (delta.projections().rowProjection().isDefined()) {
      var row = delta.projections().rowProjection().get();
      addAll(columns, output, row.schema().fieldNames(), row.colOrdinals());
    }
    var originals = delta.projections().metadataProjection().get();
    addAll(columns, output, originals.schema().fieldNames(), originals.colOrdinals());
    return new Project(CollectionConverters.asScala(columns).toSeq(), query);
  }

  private static void addAll(
      List<NamedExpression> columns,
      List<Attribute> output,
      String[] names,
      scala.collection.Seq<Object> ordinals) {
    for (int i = 0; i < names.length; i++) {
      columns.add(alias(output.get((Integer) ordinals.apply(i)), names[i]));
    }
  }

  private static LogicalPlan inserted(LogicalPlan query) {
    List<NamedExpression> columns = new ArrayList<>();
    Object insert = RowDeltaUtils$.MODULE$.INSERT_OPERATION();
    columns.add(alias(new Literal(insert, DataTypes.IntegerType), OPERATION));
    columns.addAll(CollectionConverters.asJava(query.output()));
    return new Project(CollectionConverters.asScala(columns).toSeq(), query);
  }

  static Alias alias(Expression expression, String name) {
    return new Alias(
        expression,
        name,
        NamedExpression$.MODULE$.newExprId(),
        (Seq<String>) (Seq<?>) Nil$.MODULE$,
        Option.empty(),
        (Seq<String>) (Seq<?>) Nil$.MODULE$);
  }
}
