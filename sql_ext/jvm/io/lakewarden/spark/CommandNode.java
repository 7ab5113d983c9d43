package io.lakewarden.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.logical.Statistics$;
import org.apache.spark.sql.execution.command.LeafRunnableCommand;
import org.apache.spark.sql.execution.metric.SQLMetric;
import scala.Enumeration;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** What Scala would write by itself for a command of Spark's without rows to show. */
abstract class CommandNode extends LogicalPlan implements LeafRunnableCommand {
  private final Object[] parts;
  private Seq<Enumeration.Value> patterns = TableWrite.none();

  CommandNode(Object... parts) {
    this.parts = parts;
  }

  @Override
  public Seq<Attribute> output() {
    return TableWrite.none();
  }

  @Override
  public Seq<LogicalPlan> children() {
    return TableWrite.none();
  }

  @Override
  public LogicalPlan mapChildren(Function1<LogicalPlan, LogicalPlan> unused) {
    return this;
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> unused) {
    return this;
  }

  /** Nothing in a command ever changes, so that it can be its own copy. */
  @Override
  public LogicalPlan makeCopy(Object[] unused) {
    return this;
  }

  @Override
  public LogicalPlan clone() {
    return this;
  }

  @Override
  public Map<String, SQLMetric> metrics() {
    return (Map<String, SQLMetric>) (Map<?, ?>) Map$.MODULE$.empty();
  }

  @Override
  public Seq<Enumeration.Value> nodePatterns() {
    return patterns;
  }

  @Override
  public void
      org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
          Seq<Enumeration.Value> values) {
    patterns = values;
  }

  @Override
  public int productArity() {
    return parts.length;
  }

  @Override
  public Object productElement(int index) {
    return parts[index];
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof CommandNode;
  }

  @Override
  public boolean equals(Object other) {
    return this == other;
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(this);
  }
}
