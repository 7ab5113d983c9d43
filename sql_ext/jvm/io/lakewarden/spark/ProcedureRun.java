package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.CatalystTypeConverters$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A call with its arguments, on Sparks without calls of their own: a command, so it runs once. */
final class ProcedureRun extends CommandNode {
  private final Declarations.Declaration procedure;
  private final StructType fields;
  private final List<Expression> values;
  private final Seq<Attribute> output;

  @SuppressWarnings("unchecked")
  ProcedureRun(Declarations.Declaration procedure, StructType fields, List<Expression> values) {
    super(procedure.name);
    this.procedure = procedure;
    this.fields = fields;
    this.values = values;
    this.output = (Seq<Attribute>) (Seq<?>) DataTypeUtils$.MODULE$.toAttributes(procedure.columns);
  }

  @Override
  public Seq<Attribute> output() {
    return output;
  }

  @Override
  public Seq<Row> run(SparkSession session) {
    List<?> rows = ProcedureCalls.rows(procedure.name, fields, evaluated());
    scala.Function1<Object, Object> convert =
        CatalystTypeConverters$.MODULE$.createToScalaConverter(procedure.columns);
    List<Row> shown =
        Values.rows(procedure.columns, rows).stream().map(row -> (Row) convert.apply(row)).toList();
    return CollectionConverters.asScala(shown).toSeq();
  }

  /** The arguments as Spark's optimiser leaves them: a job would make a cancelled call fail oddly. */
  private InternalRow evaluated() {
    if (values.isEmpty()) {
      return new GenericInternalRow(0);
    }
    List<NamedExpression> columns = new ArrayList<>();
    for (Expression value : values) {
      columns.add(WriteStatements.alias(value, "value" + columns.size()));
    }
    LogicalPlan row =
        new Project(CollectionConverters.asScala(columns).toSeq(), new OneRowRelation());
    Project known =
        (Project)
            Dataset$.MODULE$
                .ofRows(org.apache.spark.sql.classic.SparkSession.active(), row)
                .queryExecution()
                .optimizedPlan();
    Object[] found =
        CollectionConverters.asJava(known.projectList()).stream()
            .map(column -> ((Alias) column).child().eval(InternalRow.empty()))
            .toArray();
    return new GenericInternalRow(found);
  }

  @Override
  public String nodeName() {
    return "Call " + procedure.name;
  }
}
