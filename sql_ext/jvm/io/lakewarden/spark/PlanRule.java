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

  static AbstractPartialFunction<LogicalPlan, LogicalPlan> replacing(
      UnaryOperator<LogicalPlan> instead) {
    return new Replacing(instead);
  }

  private static final class Replacing extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    private final UnaryOperator<LogicalPlan> instead;

    Replacing(UnaryOperator<LogicalPlan> instead) {
      this.instead = instead;
    }

    @Override
    public boolean isDefinedAt(LogicalPlan node) {
      return true;
    }

    @Override
    @SuppressWarnings("unchecked")
    public <A extends LogicalPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
      LogicalPlan made = instead.apply(node);
      return made == null ? otherwise.apply(node) : (B) made;
    }
  }
}
