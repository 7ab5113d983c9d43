package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.StructField;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rows of an INSERT: what Hudi has in front of its own rows is not inserted; and rows whose
 * columns have just the names of the table's go where their names say, as in Hudi.
 */
final class InsertedQueries extends PlanRule {
  InsertedQueries(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    LakeTable table =
        node instanceof InsertIntoStatement insert ? LakeRelations.targetOf(insert.table()) : null;
    if (table == null) {
      return null;
    }
    InsertIntoStatement insert = (InsertIntoStatement) node;
    LogicalPlan rows = FittedValues.awaited(insert.query());
    if (!rows.resolved()) {
      return null;
    }
    LogicalPlan known =
        rows == insert.query() ? insert : TableRelations.withPart(insert, insert.query(), rows);
    LogicalPlan placed = placed((InsertIntoStatement) known, table);
    InsertIntoStatement made = (InsertIntoStatement) (placed == null ? known : placed);
    LogicalPlan cast = FittedValues.isLegacy() ? FittedValues.legacy(made, table) : made;
    return cast == insert ? null : cast;
  }

  /** The statement with its values where they belong; null if they are there. */
  private static LogicalPlan placed(InsertIntoStatement insert, LakeTable table) {
    List<Attribute> output = CollectionConverters.asJava(insert.query().output());
    boolean fillsIn = !Classes.PROCEDURE_COMMANDS || FittedValues.isLegacy();
    if (fillsIn && !insert.userSpecifiedCols().isEmpty()) {
      return completed(insert, table, output);
    }
    List<Attribute> own =
        table.beginsWithMetaColumns(output)
            ? output.subList(LakeTable.META_COLUMNS, output.size())
            : output;
    List<Attribute> placed = placed(insert, table, own);
    if (placed.equals(output)) {
      return null;
    }
    List<NamedExpression> columns = placed.stream().map(one -> (NamedExpression) one).toList();
    LogicalPlan query =
        new Project(CollectionConverters.asScala(columns).toSeq(), insert.query());
    return TableRelations.withPart(insert, insert.query(), query);
  }

  /** The rows of a query without Hudi's own columns, where all of these stand in front. */
  static LogicalPlan withoutMetaColumns(LogicalPlan query) {
    List<Attribute> output = CollectionConverters.asJava(query.output());
    List<String> names = output.stream().limit(LakeTable.META_COLUMNS).map(Attribute::name).toList();
    if (!names.equals(LakeTable.META_NAMES)) {
      return query;
    }
    List<NamedExpression> own = new ArrayList<>(output.subList(names.size(), output.size()));
    return new Project(CollectionConverters.asScala(own).toSeq(), query);
  }

  /**
   * All columns of the table, with NULL for those that the statement does not name: Spark does so by
   * itself since 4.1. Null where it names something else, which Spark refuses.
   */
  private static LogicalPlan completed(
      InsertIntoStatement insert, LakeTable table, List<Attribute> output) {
    List<String> names = CollectionConverters.asJava(insert.userSpecifiedCols());
    Map<String, Attribute> given = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    for (int i = 0; i < Math.min(names.size(), output.size()); i++) {
      given.put(names.get(i), output.get(i));
    }
    boolean isPlain = given.size() == names.size() && names.size() == output.size();
    List<NamedExpression> columns = new ArrayList<>();
    for (StructField column : table.ownSchema().fields()) {
      Expression value = given.remove(column.name());
      Expression missing = new Literal(null, column.dataType());
      columns.add(WriteStatements.alias(value == null ? missing : value, column.name()));
    }
    if (!isPlain || !given.isEmpty() || !insert.partitionSpec().isEmpty()) {
      return null;
    }
    LogicalPlan query = new Project(CollectionConverters.asScala(columns).toSeq(), insert.query());
    Object[] parts = new Object[insert.productArity()];
    for (int i = 0; i < parts.length; i++) {
      Object part = insert.productElement(i);
      Object kept = part == insert.userSpecifiedCols() ? TableWrite.none() : part;
      parts[i] = part == insert.query() ? query : kept;
    }
    return (LogicalPlan) insert.makeCopy(parts);
  }

  /** The columns in the order of the table's, if they have just its names; else as they are. */
  private static List<Attribute> placed(
      InsertIntoStatement insert, LakeTable table, List<Attribute> own) {
    if (insert.byName() || !insert.userSpecifiedCols().isEmpty()) {
      return own;
    }
    Map<String, Attribute> named = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    own.forEach(column -> named.put(column.name(), column));
    Set<String> given = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
    CollectionConverters.asJava(insert.partitionSpec())
        .forEach((column, value) -> given.addAll(value.isDefined() ? Set.of(column) : Set.of()));
    List<Attribute> placed = new ArrayList<>();
    for (String column : table.ownColumns()) {
      if (!given.contains(column)) {
        placed.add(named.get(column));
      }
    }
    boolean isSame = placed.size() == own.size() && named.size() == own.size();
    return isSame && !placed.contains(null) ? placed : own;
  }
}
