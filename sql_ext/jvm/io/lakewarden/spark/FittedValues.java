package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.CalendarIntervalType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The values that UPDATE and MERGE assign. As in Hudi a struct takes its fields by their places
 * where their names are others, and a text becomes what the column holds, or is an error. Spark
 * refuses both as soon as all of a statement is known, so that the statement waits for this rule.
 */
final class FittedValues extends PlanRule {
  /** How a value stands to its column: Spark can take it, a cast can, or names are in disorder. */
  private enum Fit {
    AS_IT_IS,
    CAST,
    UNSURE
  }

  FittedValues(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    Expression condition = conditionOf(node);
    if (!isWaiting(condition)) {
      return null;
    }
    LogicalPlan known = withCondition(node, ((And) condition).left());
    return known.resolved() ? (LogicalPlan) known.transformExpressions(assignments()) : null;
  }

  private static scala.PartialFunction<Expression, Expression> assignments() {
    return PlanRule.<Expression>replacing(
        expression ->
            expression instanceof Assignment one
                    && fit(one.value().dataType(), one.key().dataType()) == Fit.CAST
                    && Cast.canAnsiCast(one.value().dataType(), one.key().dataType())
                ? new Assignment(one.key(), cast(one.value(), one.key().dataType()))
                : null);
  }

  /** Whether values are cast by Spark's old policy, whatever becomes of them. */
  static boolean isLegacy() {
    return SQLConf.get().storeAssignmentPolicy().toString().equals("LEGACY");
  }

  /** The rows of an INSERT, which may have had to wait to be known. */
  static LogicalPlan awaited(LogicalPlan query) {
    boolean waits =
        query instanceof Filter filter && filter.condition() instanceof Cast cast && isNever(cast);
    return waits ? ((Filter) query).child() : query;
  }

  /** The rows of an INSERT as the table's columns hold them; Spark has no such cast for tables. */
  static LogicalPlan legacy(InsertIntoStatement insert, LakeTable table) {
    List<Attribute> output = CollectionConverters.asJava(insert.query().output());
    List<StructField> columns = columns(insert, table);
    if (columns.size() != output.size()) {
      return insert;
    }
    List<NamedExpression> values = new ArrayList<>();
    boolean isCast = true;
    for (int i = 0; i < columns.size(); i++) {
      DataType type = columns.get(i).dataType();
      Expression value = output.get(i);
      isCast &= type.equals(value.dataType()) && output.get(i).name().equals(columns.get(i).name());
      if (Cast.canCast(value.dataType(), type)) {
        value = new Cast(value, type, Option.empty(), EvalMode.LEGACY());
      }
      values.add(WriteStatements.alias(value, columns.get(i).name()));
    }
    if (isCast) {
      return insert;
    }
    LogicalPlan query = new Project(CollectionConverters.asScala(values).toSeq(), insert.query());
    return TableRelations.withPart(insert, insert.query(), query);
  }

  /** The columns that an INSERT has values for, in the order of these. */
  private static List<StructField> columns(InsertIntoStatement insert, LakeTable table) {
    Map<String, StructField> own = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    List<String> named = new ArrayList<>(table.ownColumns());
    List.of(table.ownSchema().fields()).forEach(column -> own.put(column.name(), column));
    if (insert.byName()) {
      named.clear();
      CollectionConverters.asJava(insert.query().output()).forEach(one -> named.add(one.name()));
    } else if (!insert.userSpecifiedCols().isEmpty()) {
      named.clear();
      named.addAll(CollectionConverters.asJava(insert.userSpecifiedCols()));
    }
    CollectionConverters.asJava(insert.partitionSpec())
        .forEach(
            (column, value) -> {
              if (value.isDefined()) {
                named.removeIf(column::equalsIgnoreCase);
              }
            });
    named.removeIf(name -> !own.containsKey(name));
    return named.stream().map(own::get).toList();
  }

  private static Cast cast(Expression value, DataType type) {
    return new Cast(value, type, Option.empty(), EvalMode.ANSI());
  }

  private static Fit fit(DataType given, DataType wanted) {
    if (given instanceof ArrayType from && wanted instanceof ArrayType to) {
      return fit(from.elementType(), to.elementType());
    }
    if (given instanceof MapType from && wanted instanceof MapType to) {
      return worse(fit(from.keyType(), to.keyType()), fit(from.valueType(), to.valueType()));
    }
    if (given instanceof StructType from && wanted instanceof StructType to) {
      return fitOfFields(from, to);
    }
    boolean isParsed = given instanceof StringType && !(wanted instanceof StringType);
    return isParsed && !isNested(wanted) ? Fit.CAST : Fit.AS_IT_IS;
  }

  private static Fit fitOfFields(StructType from, StructType to) {
    if (from.length() != to.length()) {
      return Fit.UNSURE;
    }
    Set<String> missing = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
    missing.addAll(Arrays.asList(to.fieldNames()));
    for (String name : from.fieldNames()) {
      missing.remove(name);
    }
    Fit found = missing.isEmpty() ? Fit.AS_IT_IS : Fit.CAST;
    for (int i = 0; i < to.length(); i++) {
      if (missing.isEmpty() && !from.fields()[i].name().equalsIgnoreCase(to.fields()[i].name())) {
        // Spark finds them by their names; a cast goes by places.
        return Fit.UNSURE;
      }
      found = worse(found, fit(from.fields()[i].dataType(), to.fields()[i].dataType()));
    }
    return found;
  }

  private static Fit worse(Fit one, Fit other) {
    return one.compareTo(other) > 0 ? one : other;
  }

  private static boolean isNested(DataType type) {
    return type instanceof ArrayType || type instanceof MapType || type instanceof StructType;
  }

  private static Expression conditionOf(LogicalPlan node) {
    if (node instanceof MergeIntoTable merge) {
      return merge.mergeCondition();
    }
    boolean hasOne = node instanceof UpdateTable update && update.condition().isDefined();
    return hasOne ? ((UpdateTable) node).condition().get() : null;
  }

  private static LogicalPlan withCondition(LogicalPlan node, Expression condition) {
    if (node instanceof MergeIntoTable merge) {
      return TableRelations.withPart(merge, merge.mergeCondition(), condition);
    }
    UpdateTable update = (UpdateTable) node;
    return update.copy(update.table(), update.assignments(), Option.apply(condition));
  }

  /** A condition that can't be known: no interval is true or false. */
  private static Expression never() {
    return cast(new Literal(null, DataTypes.CalendarIntervalType), DataTypes.BooleanType);
  }

  private static boolean isWaiting(Expression condition) {
    return condition instanceof And both
        && both.right() instanceof Cast cast
        && isNever(cast);
  }

  private static boolean isNever(Cast cast) {
    return cast.child() instanceof Literal
        && cast.child().dataType() instanceof CalendarIntervalType;
  }

  /** Lets statements wait until their values have been looked at. */
  static final class Waiting extends PlanRule {
    Waiting(SparkSession session) {
      super(session);
    }

    @Override
    protected LogicalPlan instead(LogicalPlan node) {
      if (node.resolved() || isWaiting(conditionOf(node))) {
        return null;
      }
      if (node instanceof MergeIntoTable merge
          && LakeRelations.targetOf(merge.targetTable()) != null) {
        return withCondition(merge, new And(merge.mergeCondition(), never()));
      }
      if (node instanceof InsertIntoStatement insert
          && isLegacy()
          && LakeRelations.targetOf(insert.table()) != null
          && !insert.query().resolved()
          && awaited(insert.query()) == insert.query()) {
        LogicalPlan query = new Filter(never(), insert.query());
        return TableRelations.withPart(insert, insert.query(), query);
      }
      if (node instanceof UpdateTable update && LakeRelations.targetOf(update.table()) != null) {
        Expression all = new Literal(true, DataTypes.BooleanType);
        Expression own = update.condition().isDefined() ? update.condition().get() : all;
        return withCondition(update, new And(own, never()));
      }
      return null;
    }
  }
}
