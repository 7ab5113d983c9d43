package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Generator;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.PythonUDTF;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Errors of table functions in Python workers: what a worker raises reaches clients with its stack,
 * so ours give the parts of an error as a value instead, which becomes an error in the JVM.
 */
public final class WorkerErrors {
  private static final String COLUMN = "__error";
  private static final String REPORTED = "reported";
  private static final DataType PARTS = DataTypes.createArrayType(DataTypes.StringType);

  private WorkerErrors() {}

  /** Whether a function reports its errors already. */
  static boolean areReported(PythonUDTF function) {
    return List.of(function.elementSchema().fieldNames()).contains(COLUMN);
  }

  /** The rows of a function; an argument makes it report its errors, which are thrown here. */
  static LogicalPlan thrown(Generate generate, PythonUDTF function, Expression path) {
    PythonUDTF reporting = reporting(function, path);
    Attribute error =
        new AttributeReference(
            COLUMN,
            PARTS,
            true,
            Metadata.empty(),
            NamedExpression$.MODULE$.newExprId(),
            TableWrite.none());
    List<Attribute> columns = new ArrayList<>(CollectionConverters.asJava(generate.generatorOutput()));
    columns.add(error);
    LogicalPlan reported =
        new Generate(
            (Generator) reporting,
            generate.unrequiredChildIndex(),
            generate.outer(),
            generate.qualifier(),
            CollectionConverters.asScala(columns).toSeq(),
            generate.child());
    List<NamedExpression> output =
        CollectionConverters.asJava(generate.output()).stream()
            .map(column -> (NamedExpression) column)
            .toList();
    return new Project(
        CollectionConverters.asScala(output).toSeq(), new Filter(new IsNull(thrown(error)), reported));
  }

  /** The same function with one column and one argument more. */
  private static PythonUDTF reporting(PythonUDTF function, Expression path) {
    Object[] parts = new Object[function.productArity()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = function.productElement(i);
      if (parts[i] == function.children()) {
        parts[i] = CollectionConverters.asScala(List.of(path, Literal$.MODULE$.apply(REPORTED))).toSeq();
      } else if (parts[i] == function.elementSchema()) {
        parts[i] = function.elementSchema().add(COLUMN, PARTS);
      } else if (parts[i] instanceof Option<?> option
          && option.isDefined()
          && option.get() instanceof Seq) {
        // Which of the arguments are tables. None is; but it would be said of one argument only.
        parts[i] = Option.empty();
      }
    }
    return (PythonUDTF) function.makeCopy(parts);
  }

  /** NULL for no error; otherwise it is thrown. */
  private static Expression thrown(Attribute error) {
    return (Expression)
        CatalogEntries.filled(
            CatalogEntries.singleton(StaticInvoke.class, null),
            "apply",
            Map.of(
                0, WorkerErrors.class,
                1, DataTypes.BooleanType,
                2, "raise",
                3, TableWrite.<Expression>one(error)));
  }

  /** Called by Spark's executors; the class of the exception is one that every driver knows. */
  public static Boolean raise(ArrayData parts) {
    String condition = LakewardenException.register(part(parts, 0), part(parts, 1));
    Map<String, String> said =
        Map.of("what", part(parts, 2), "why", part(parts, 3), "now", part(parts, 4));
    throw new SparkRuntimeException(
        condition, LakewardenException.asScala(said), null, new QueryContext[0], "");
  }

  private static String part(ArrayData parts, int at) {
    return parts.getUTF8String(at).toString();
  }
}
