package io.lakewarden.spark;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Our rules: tables of the format `lakewarden` are Spark's, functions and calls know names. */
final class TableRules {
  // Hints are resolved first of all, so that Spark never looks for our format by itself, nor takes
  // the rows of an INSERT by their places that have names.
  static final List<Function<SparkSession, Rule<LogicalPlan>>> FIRST =
      List.of(
          SparkSources::new,
          SourceLimits::new,
          TableRelations::new,
          InsertedQueries::new,
          StreamTargets::new,
          FittedValues.Waiting::new,
          CreateStatements.Naming::new);
  private static final List<Function<SparkSession, Rule<LogicalPlan>>> RESOLVING =
      List.of(TimeTravels::new, InsertedQueries::new, FittedValues::new);
  private static final List<Function<SparkSession, Rule<LogicalPlan>>> RESOLVED =
      List.of(
          FrameViews::new,
          OneMoment::new,
          CreateStatements::new,
          RemovalStatements::new,
          PartitionStatements::new,
          AlterStatements::new,
          UnsupportedStatements::new,
          WriteStatements::new,
          NamedTables::new);

  private static final List<Function<SparkSession, Judge>> JUDGES = List.of(Judge::new);

  private TableRules() {}

  static void inject(SparkSessionExtensions extensions) {
    FirstRules.inject(extensions, FIRST);
    FirstRules.inject(extensions, CallRules.FIRST);
    RESOLVING.forEach(rule -> extensions.injectResolutionRule(asScala(rule)));
    RESOLVED.forEach(rule -> extensions.injectPostHocResolutionRule(asScala(rule)));
    CallRules.RESOLVED.forEach(rule -> extensions.injectPostHocResolutionRule(asScala(rule)));
    if (!Classes.PROCEDURE_COMMANDS) {
      // Spark 4.0 makes the changes of rows after the rules of its analyser that others may add.
      extensions.injectOptimizerRule(asScala(WriteStatements::new));
    }
    extensions.injectPreCBORule(asScala(ScanSubstitution::new));
    extensions.injectCheckRule(
        new AbstractFunction1<>() {
          @Override
          public Function1<LogicalPlan, BoxedUnit> apply(
              org.apache.spark.sql.SparkSession session) {
            return new Judge((SparkSession) session);
          }
        });
    extensions.injectPreCBORule(asScala(FunctionRows::new));
    CallRules.OPTIMISED.forEach(rule -> extensions.injectPreCBORule(asScala(rule)));
    ChangesFunction.inject(extensions);
  }

  /**
   * A session that is there has made its analyser, with lists of rules that are for good as Spark
   * sees them. Its optimiser asks the extensions anew for each plan.
   */
  static void into(SparkSession session) throws ReflectiveOperationException {
    Analyzer analyzer = session.sessionState().analyzer();
    append(analyzer, "extendedResolutionRules", RESOLVING, session);
    append(analyzer, "postHocResolutionRules", RESOLVED, session);
    append(analyzer, "postHocResolutionRules", CallRules.RESOLVED, session);
    append(analyzer, "extendedCheckRules", JUDGES, session);
    FirstRules.into(session, FIRST);
    FirstRules.into(session, CallRules.FIRST);
    ChangesFunction.register(session);
  }


  @SuppressWarnings("unchecked")
  static void append(
      Analyzer analyzer,
      String name,
      List<? extends Function<SparkSession, ?>> rules,
      SparkSession session)
      throws ReflectiveOperationException {
    Field field = analyzer.getClass().getDeclaredField(name);
    field.setAccessible(true);
    Seq<Object> all = (Seq<Object>) field.get(analyzer);
    List<Object> more = new ArrayList<>();
    rules.forEach(rule -> more.add(rule.apply(session)));
    more.addAll(0, CollectionConverters.asJava(all));
    field.set(analyzer, CollectionConverters.asScala(more).toSeq());
  }

  static AbstractFunction1<org.apache.spark.sql.SparkSession, Rule<LogicalPlan>> asScala(
      Function<SparkSession, Rule<LogicalPlan>> builder) {
    return new AbstractFunction1<>() {
      @Override
      public Rule<LogicalPlan> apply(org.apache.spark.sql.SparkSession session) {
        return builder.apply((SparkSession) session);
      }
    };
  }
}
