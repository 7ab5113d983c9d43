package io.lakewarden.spark;

import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** A rule that looks at one node after the other, and puts something else in the place of some. */
abstract class PlanRule extends Rule<LogicalPlan> {
  protected final SparkSession session;

  PlanRule(SparkSession session) {
    this.session = session;
  }

  /** What takes the place of a node; null to leave it. */
  protected abstract LogicalPlan instead(LogicalPlan node);

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(replacing());
  }

  protected final AbstractPartialFunction<LogicalPlan, LogicalPlan> replacing() {
    return replacing(this::instead);
  }

  /** The same for nodes of a plan, or for expressions. */
  static <T> AbstractPartialFunction<T, T> replacing(UnaryOperator<T> instead) {
    return new Replacing<>(instead);
  }

  private static final class Replacing<T> extends AbstractPartialFunction<T, T> {
    private final UnaryOperator<T> instead;

    Replacing(UnaryOperator<T> instead) {
      this.instead = instead;
    }

    @Override
    public boolean isDefinedAt(T node) {
      return true;
    }

    @Override
    @SuppressWarnings("unchecked")
    public <A extends T, B> B applyOrElse(A node, Function1<A, B> otherwise) {
      T made = instead.apply(node);
      return made == null ? otherwise.apply(node) : (B) made;
    }
  }
}
