package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.optimizer.OptimizeOneRowRelationSubquery$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SupportsSubquery;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.errors.QueryCompilationErrors$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A call as it was parsed, on Sparks that have none themselves, or none with parameters: Spark's
 * rules resolve its arguments in it, then {@link Binding} makes a {@link ProcedureRun} of it.
 */
final class FormerCall extends CommandNode implements SupportsSubquery {
  private final String name;
  private final Seq<Expression> arguments;

  FormerCall(String name, Seq<Expression> arguments) {
    super(name, arguments);
    this.name = name;
    this.arguments = arguments;
  }

  @Override
  public boolean resolved() {
    return false;
  }

  @Override
  @SuppressWarnings("unchecked")
  public LogicalPlan makeCopy(Object[] parts) {
    return new FormerCall((String) parts[0], (Seq<Expression>) parts[1]);
  }

  @Override
  public Seq<Row> run(org.apache.spark.sql.SparkSession unused) {
    throw new IllegalStateException(this + " is not resolved.");
  }

  /** What runs, if everything is known of the arguments by now; null if not. */
  private LogicalPlan bound() {
    Declarations.Declaration procedure = Declarations.named(name);
    List<Expression> given = CollectionConverters.asJava(arguments);
    given.forEach(argument -> Constants.check(procedure.name, argument, false));
    if (!given.stream().allMatch(Expression::resolved)) {
      return null;
    }
    // A subquery that reads nothing is a constant, as Spark's optimiser sees it.
    FormerCall plain = (FormerCall) OptimizeOneRowRelationSubquery$.MODULE$.apply(this);
    List<Expression> known = CollectionConverters.asJava(plain.arguments);
    known.forEach(argument -> Constants.check(procedure.name, argument, true));
    StructType fields = fields(procedure.name, known);
    ProcedureCalls.check(procedure.name, fields);
    return new ProcedureRun(procedure, fields, known.stream().map(Constants::value).toList());
  }

  private static StructType fields(String procedure, List<Expression> given) {
    List<StructField> fields = new ArrayList<>();
    boolean isNamed = false;
    for (Expression argument : given) {
      DataType type = argument.dataType();
      if (argument instanceof NamedArgumentExpression named) {
        isNamed = true;
        fields.add(new StructField(named.key(), type, true, ProcedureCalls.NAMED));
      } else if (isNamed) {
        String last = fields.get(fields.size() - 1).name();
        throw LakewardenException.rethrow(
            QueryCompilationErrors$.MODULE$.unexpectedPositionalArgument(procedure, last));
      } else {
        fields.add(new StructField("value", type, true, Metadata.empty()));
      }
    }
    return new StructType(fields.toArray(StructField[]::new));
  }

  /** Binds calls, once Spark's own rules have done what they can. */
  static final class Binding extends PlanRule {
    Binding(SparkSession session) {
      super(session);
    }

    @Override
    protected LogicalPlan instead(LogicalPlan node) {
      return node instanceof FormerCall call ? call.bound() : null;
    }
  }
}
