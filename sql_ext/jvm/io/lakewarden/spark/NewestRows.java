package io.lakewarden.spark;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CurrentRow$;
import org.apache.spark.sql.catalyst.expressions.Descending$;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NullsLast$;
import org.apache.spark.sql.catalyst.expressions.Rank;
import org.apache.spark.sql.catalyst.expressions.RowFrame$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.SpecifiedWindowFrame;
import org.apache.spark.sql.catalyst.expressions.UnboundedPreceding$;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.WindowSpecDefinition;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A MERGE by the whole record key takes the newest row of its source for each row of the table.
 *
 * <p>Whatever else matches twice, or has no newest row, goes on to the engine, which refuses it and
 * names the keys; Spark's own check would not.
 */
final class NewestRows {
  private static final String RANK = "__rank";

  private final LakeTable table;
  private boolean isJoined;

  private NewestRows(LakeTable table) {
    this.table = table;
  }

  static LogicalPlan of(LogicalPlan query, LakeTable table) {
    NewestRows rows = new NewestRows(table);
    return query.transformDown(PlanRule.replacing(rows::instead));
  }

  private LogicalPlan instead(LogicalPlan node) {
    if (node instanceof MergeRows merge) {
      return merge.checkCardinality() ? unchecked(merge) : null;
    }
    if (isJoined || !(node instanceof Join join)) {
      return null;
    }
    // Joins further down are the source's own.
    isJoined = true;
    if (isTarget(join.left())) {
      LogicalPlan newest = newest(join.right(), join);
      return newest == null ? null : TableRelations.withPart(join, join.right(), newest);
    }
    if (isTarget(join.right())) {
      LogicalPlan newest = newest(join.left(), join);
      return newest == null ? null : TableRelations.withPart(join, join.left(), newest);
    }
    return null;
  }

  private static LogicalPlan unchecked(MergeRows merge) {
    Object[] parts = new Object[merge.productArity()];
    for (int i = 0; i < parts.length; i++) {
      Object part = merge.productElement(i);
      parts[i] = part instanceof Boolean ? Boolean.FALSE : part;
    }
    return (LogicalPlan) merge.makeCopy(parts);
  }

  /** Whether a side of the join reads the table that is written to, and nothing else. */
  private static boolean isTarget(LogicalPlan side) {
    LogicalPlan node = side;
    while (node instanceof Project || node instanceof Filter) {
      node = node.children().head();
    }
    LakeTable read = LakeRelations.tableOf(node);
    return read != null && read.isMerged();
  }

  /** The source without rows that are older than others of their key; null to leave it. */
  private LogicalPlan newest(LogicalPlan source, Join join) {
    List<Expression> keys = keys(source, join);
    List<Expression> ordering = columns(source, names("orderingFields"));
    if (keys == null || ordering == null || ordering.isEmpty()) {
      return null;
    }
    List<Expression> places = columns(source, table.partitions());
    if (places != null) {
      keys.addAll(places);
    }
    List<SortOrder> order = new ArrayList<>();
    for (Expression column : ordering) {
      order.add(new SortOrder(column, Descending$.MODULE$, NullsLast$.MODULE$, none()));
    }
    SpecifiedWindowFrame frame =
        new SpecifiedWindowFrame(
            RowFrame$.MODULE$, UnboundedPreceding$.MODULE$, CurrentRow$.MODULE$);
    WindowSpecDefinition within = new WindowSpecDefinition(seq(keys), seq(order), frame);
    Alias rank = WriteStatements.alias(new WindowExpression(new Rank(seq(ordering)), within), RANK);
    LogicalPlan ranked = window(List.of(rank), keys, order, source);
    EqualTo isFirst = new EqualTo(rank.toAttribute(), new Literal(1, DataTypes.IntegerType));
    List<NamedExpression> own = new ArrayList<>(CollectionConverters.asJava(source.output()));
    return new Project(seq(own), new Filter(isFirst, ranked));
  }

  /** What the source has for the key, if the condition compares all of it and no other column. */
  private List<Expression> keys(LogicalPlan source, Join join) {
    List<String> key = names("primaryKey");
    Set<String> open = new TreeSet<>(key);
    List<Expression> found = new ArrayList<>();
    if (join.condition().isEmpty() || key.isEmpty()) {
      return null;
    }
    for (Expression part : parts(join.condition().get())) {
      Expression left;
      Expression right;
      if (part instanceof EqualTo equal) {
        left = equal.left();
        right = equal.right();
      } else if (part instanceof EqualNullSafe equal) {
        left = equal.left();
        right = equal.right();
      } else {
        return null;
      }
      boolean isTurned = left.references().subsetOf(source.outputSet());
      Expression theirs = isTurned ? left : right;
      Expression ours = isTurned ? right : left;
      while (ours instanceof Cast cast) {
        ours = cast.child();
      }
      if (!theirs.references().subsetOf(source.outputSet())
          || theirs.references().isEmpty()
          || !(ours instanceof Attribute column)
          || isOf(source.outputSet(), column)) {
        return null;
      }
      if (key.contains(column.name())) {
        open.remove(column.name());
        found.add(theirs);
      } else if (!table.partitions().contains(column.name())) {
        return null;
      }
    }
    return open.isEmpty() ? found : null;
  }

  private static boolean isOf(AttributeSet columns, Attribute column) {
    return columns.contains(column);
  }

  private static List<Expression> parts(Expression condition) {
    List<Expression> found = new ArrayList<>();
    if (condition instanceof And both) {
      found.addAll(parts(both.left()));
      found.addAll(parts(both.right()));
    } else {
      found.add(condition);
    }
    return found;
  }

  private List<String> names(String property) {
    String named = table.properties().getOrDefault(property, "");
    return named.isEmpty() ? List.of() : Arrays.asList(named.split(","));
  }

  /** The source's columns of these names; null if one of them is not there, or there twice. */
  private static List<Expression> columns(LogicalPlan source, List<String> names) {
    List<Expression> found = new ArrayList<>();
    for (String name : names) {
      List<Attribute> named = new ArrayList<>(CollectionConverters.asJava(source.output()));
      named.removeIf(column -> !column.name().equalsIgnoreCase(name));
      if (named.size() != 1) {
        return null;
      }
      found.add(named.get(0));
    }
    return found;
  }

  /** By reflection: later releases give windows a hint besides. */
  private static LogicalPlan window(
      List<NamedExpression> made, List<Expression> keys, List<SortOrder> order, LogicalPlan child) {
    try {
      Constructor<?> constructor = Window.class.getConstructors()[0];
      Object[] all = {seq(made), seq(keys), seq(order), child, Option.empty()};
      return (LogicalPlan)
          constructor.newInstance(Arrays.copyOf(all, constructor.getParameterCount()));
    } catch (ReflectiveOperationException unknown) {
      throw new IllegalStateException(unknown);
    }
  }

  private static <T> Seq<T> seq(List<? extends T> items) {
    List<T> own = new ArrayList<>(items);
    return CollectionConverters.asScala(own).toSeq();
  }

  @SuppressWarnings("unchecked")
  private static <T> Seq<T> none() {
    return (Seq<T>) (Seq<?>) Nil$.MODULE$;
  }
}
