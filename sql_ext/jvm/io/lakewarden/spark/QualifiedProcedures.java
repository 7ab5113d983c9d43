package io.lakewarden.spark;

import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.analysis.UnresolvedProcedure;
import org.apache.spark.sql.catalyst.plans.logical.Call;
import org.apache.spark.sql.catalyst.plans.logical.CompoundPlanStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.execution.command.ExplainCommand;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Gives our procedures their full name, whatever stands before it, as Hudi's users are used to. It
 * works on plans, so it holds in scripts, EXECUTE IMMEDIATE, EXPLAIN and DESCRIBE, too. Procedures
 * of other catalogs are left alone.
 */
final class QualifiedProcedures {
  private final Catalogs catalogs;

  QualifiedProcedures(org.apache.spark.sql.SparkSession session) {
    this.catalogs = new Catalogs(session);
  }

  /** A plan as it was parsed, with full names. */
  LogicalPlan in(LogicalPlan plan) {
    if (plan instanceof CompoundPlanStatement) {
      return inScript(plan);
    }
    if (plan.containsPattern(TreePattern$.MODULE$.UNRESOLVED_PROCEDURE())) {
      return plan.resolveOperatorsDown(new Qualification());
    }
    if (plan instanceof ExplainCommand) {
      // What is explained is no child of the command.
      ExplainCommand command = (ExplainCommand) plan;
      return new ExplainCommand(in(command.logicalPlan()), command.mode());
    }
    return Classes.PROCEDURE_COMMANDS
        ? ProcedureCommands.in(plan, this::qualified, this::shown)
        : plan;
  }

  /** Part by part: a block that Spark makes anew from its children has lost its handlers. */
  private LogicalPlan inScript(LogicalPlan statement) {
    Object[] parts = new Object[statement.productArity()];
    boolean isSame = true;
    for (int i = 0; i < parts.length; i++) {
      parts[i] = inPart(statement.productElement(i));
      isSame &= parts[i] == statement.productElement(i);
    }
    return isSame ? statement : (LogicalPlan) statement.makeCopy(parts);
  }

  private Object inPart(Object part) {
    if (part instanceof LogicalPlan plan) {
      return in(plan);
    }
    if (part instanceof Option<?> option && option.isDefined()) {
      Object made = inPart(option.get());
      return made == option.get() ? part : Option.apply(made);
    }
    if (part instanceof Seq<?> parts) {
      List<Object> before = CollectionConverters.asJava((Seq<Object>) parts);
      List<Object> after = before.stream().map(this::inPart).toList();
      boolean isSame = IntStream.range(0, before.size()).allMatch(i -> before.get(i) == after.get(i));
      return isSame ? part : CollectionConverters.asScala(after).toSeq();
    }
    return part;
  }

  /** The namespace to show; without a catalog that has procedures, ours; null for another one. */
  private Seq<String> shown(Seq<String> named) {
    Seq<String> given = named == null ? names() : named;
    boolean isOurs = owner(given) == null && (given.isEmpty() || !Catalogs.isCatalog(given.head()));
    return isOurs ? names(Procedures.CATALOG, Procedures.NAMESPACE) : null;
  }

  private Seq<String> qualified(Seq<String> name) {
    Identifier last = Identifier.of(new String[] {Procedures.NAMESPACE}, name.last());
    ProcedureCatalog owner = owner(name);
    boolean isNamed = name.size() > 1 && Catalogs.isCatalog(name.head());
    if (owner != null && (isNamed || has(owner, last))) {
      return name;
    }
    return names(Procedures.CATALOG, Procedures.NAMESPACE, name.last());
  }

  private static Seq<String> names(String... parts) {
    return CollectionConverters.asScala(List.of(parts)).toSeq();
  }

  /** Another catalog with procedures, in which Spark would look for the name. */
  private ProcedureCatalog owner(Seq<String> name) {
    CatalogPlugin catalog = name.isEmpty() ? catalogs.current() : catalogs.owner(name.head());
    return catalog instanceof ProcedureCatalog && !(catalog instanceof Procedures)
        ? (ProcedureCatalog) catalog
        : null;
  }

  private static boolean has(ProcedureCatalog catalog, Identifier name) {
    try {
      return catalog.loadProcedure(name) != null;
    } catch (RuntimeException unknown) {
      return false;
    }
  }

  /** The same for what our parser has not seen. */
  static final class Naming extends PlanRule {
    private final QualifiedProcedures procedures;

    Naming(SparkSession session) {
      super(session);
      this.procedures = new QualifiedProcedures(session);
    }

    @Override
    protected LogicalPlan instead(LogicalPlan node) {
      return node instanceof Call ? procedures.in(node) : null;
    }
  }

  private final class Qualification extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    @Override
    public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof UnresolvedProcedure;
    }

    @Override
    @SuppressWarnings("unchecked")
    public <In extends LogicalPlan, Out> Out applyOrElse(
        In plan, scala.Function1<In, Out> otherwise) {
      if (!isDefinedAt(plan)) {
        return otherwise.apply(plan);
      }
      return (Out) new UnresolvedProcedure(qualified(((UnresolvedProcedure) plan).nameParts()));
    }
  }
}
