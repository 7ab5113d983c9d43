package io.lakewarden.spark;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.rules.RuleExecutor;
import org.apache.spark.sql.internal.SessionState;
import scala.Function1;
import scala.collection.Seq;
import scala.runtime.BoxedUnit;

/**
 * Rules that see a plan before Spark looks for anything in it. Spark 3.5 has no place for them, so
 * that a session gets an analyser with one batch more than its own.
 */
final class FirstRules extends Analyzer {
  private static final String BEFORE = "Simple Sanity Check";

  private final Analyzer own;
  private final List<Rule<LogicalPlan>> rules = new ArrayList<>();

  private FirstRules(Analyzer own) {
    super(own.catalogManager());
    this.own = own;
  }

  /** Nothing: a session catches up with its first statement. */
  static void inject(
      SparkSessionExtensions unused, List<Function<SparkSession, Rule<LogicalPlan>>> rules) {}

  static void into(SparkSession session, List<Function<SparkSession, Rule<LogicalPlan>>> builders)
      throws ReflectiveOperationException {
    SessionState state = session.sessionState();
    if (state.analyzer() instanceof FirstRules) {
      return;
    }
    FirstRules analyzer = new FirstRules(state.analyzer());
    analyzer.rules.add(new SavedTables(session));
    builders.forEach(builder -> analyzer.rules.add(builder.apply(session)));
    Field field = SessionState.class.getDeclaredField("analyzer");
    field.setAccessible(true);
    field.set(state, analyzer);
  }

  @Override
  public Seq<RuleExecutor<LogicalPlan>.Batch> batches() {
    List<RuleExecutor<LogicalPlan>.Batch> all = new ArrayList<>();
    for (RuleExecutor<LogicalPlan>.Batch batch : CollectionConverters.asJava(super.batches())) {
      if (batch.name().equals(BEFORE)) {
        all.add(new Batch("Lakewarden", fixedPoint(), CollectionConverters.asScala(rules)));
      }
      all.add(batch);
    }
    return CollectionConverters.asScala(all);
  }

  @Override
  public Seq<Rule<LogicalPlan>> extendedResolutionRules() {
    return own.extendedResolutionRules();
  }

  @Override
  public Seq<Rule<LogicalPlan>> postHocResolutionRules() {
    return own.postHocResolutionRules();
  }

  @Override
  public Seq<Function1<LogicalPlan, BoxedUnit>> extendedCheckRules() {
    return own.extendedCheckRules();
  }
}
