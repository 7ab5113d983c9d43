package io.lakewarden.spark;

import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.command.DescribeProcedureCommand;
import org.apache.spark.sql.execution.command.ShowProceduresCommand;
import scala.collection.immutable.Seq;

/** The commands about procedures that Spark has since 4.1; an older one never loads this class. */
final class ProcedureCommands {
  

  private ProcedureCommands() {}

  static LogicalPlan in(
      LogicalPlan plan,
      UnaryOperator<Seq<String>> qualified,
      UnaryOperator<Seq<String>> shownNamespace) {
    if (plan instanceof DescribeProcedureCommand) {
      return described((DescribeProcedureCommand) plan, qualified);
    }
    if (plan instanceof ShowProceduresCommand) {
      return shown((ShowProceduresCommand) plan, shownNamespace);
    }
    return plan;
  }

  private static LogicalPlan described(
      DescribeProcedureCommand command, UnaryOperator<Seq<String>> qualified) {
    if (!(command.child() instanceof UnresolvedIdentifier)) {
      return command;
    }
    UnresolvedIdentifier given = (UnresolvedIdentifier) command.child();
    Seq<String> name = qualified.apply(given.nameParts());
    return new DescribeProcedureCommand(
        new UnresolvedIdentifier(name, given.allowTemp()), command.output());
  }

  private static LogicalPlan shown(
      ShowProceduresCommand command, UnaryOperator<Seq<String>> shownNamespace) {
    LogicalPlan child = command.child();
    boolean isNamed = child instanceof UnresolvedNamespace;
    Seq<String> ours =
        shownNamespace.apply(isNamed ? ((UnresolvedNamespace) child).multipartIdentifier() : null);
    return ours == null
        ? command
        : new ShowProceduresCommand(new UnresolvedNamespace(ours, false), command.output());
  }
}
