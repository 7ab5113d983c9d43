package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTable;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.TableSpec;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedTableSpec;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** CREATE TABLE ... USING lakewarden, once Spark knows names, columns and options. */
final class CreateStatements extends PlanRule {
  private static final String MARK = TableSource.class.getName();
  private static final String HUDI_MARK = TableSource.Hudi.class.getName();

  CreateStatements(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (node instanceof CreateTable create && isOurs(create.tableSpec())) {
      if (!create.resolved()) {
        return null;
      }
      return creation(
          create.name(),
          (TableSpec) create.tableSpec(),
          CreatedColumns.of(create),
          CollectionConverters.asJava(create.partitioning()),
          create.ignoreIfExists(),
          null);
    }
    if (node instanceof CreateTableAsSelect create && isOurs(create.tableSpec())) {
      if (!create.resolved()) {
        return null;
      }
      LogicalPlan query = InsertedQueries.withoutMetaColumns(create.query());
      return creation(
          create.name(),
          (TableSpec) create.tableSpec(),
          query.schema(),
          CollectionConverters.asJava(create.partitioning()),
          create.ignoreIfExists(),
          query);
    }
    LogicalPlan like = CreatedLike.of(session, node);
    if (like != null) {
      return like;
    }
    boolean replaces =
        (node instanceof ReplaceTable replace && isOurs(replace.tableSpec()))
            || (node instanceof ReplaceTableAsSelect other && isOurs(other.tableSpec()));
    if (replaces) {
      throw noReplacement();
    }
    return null;
  }

  static RuntimeException noReplacement() {
    return LakewardenException.of(
        "UNSUPPORTED_REPLACE_TABLE",
        "0A000",
        "A table of this format can't be replaced in one statement.",
        "A reader would find neither table between the drop and the creation.",
        "Use INSERT OVERWRITE, or DROP TABLE and CREATE TABLE.");
  }

  private static boolean isOurs(Object spec) {
    return provider(spec).equals(MARK) || provider(spec).equals(HUDI_MARK);
  }

  private static String provider(Object spec) {
    Option<String> provider =
        spec instanceof TableSpec known
            ? known.provider()
            : spec instanceof UnresolvedTableSpec unknown ? unknown.provider() : Option.empty();
    return provider.isDefined() ? provider.get() : "";
  }

  private static LogicalPlan creation(
      LogicalPlan name,
      TableSpec spec,
      StructType columns,
      List<Transform> partitioning,
      boolean ifNotExists,
      LogicalPlan query) {
    Identifier identifier = ((ResolvedIdentifier) name).identifier();
    List<String> partitions = new ArrayList<>();
    for (Transform transform : partitioning) {
      partitions.add(partition(transform));
    }
    Map<String, String> properties =
        new HashMap<>(CollectionConverters.asJava(spec.options()));
    properties.putAll(CollectionConverters.asJava(spec.properties()));
    return new Creation(
        identifier,
        columns,
        partitions,
        properties,
        spec.location().isDefined() ? spec.location().get() : null,
        provider(spec).equals(HUDI_MARK) ? TableRelations.HUDI : TableRelations.FORMAT,
        spec.comment().isDefined() ? spec.comment().get() : null,
        ifNotExists,
        query);
  }

  private static String partition(Transform transform) {
    if (!transform.name().equals("identity")) {
      throw LakewardenException.of(
          "UNSUPPORTED_PARTITIONING",
          "0A000",
          "A table can't be partitioned by " + transform.describe() + ".",
          "Partitions are made of the values of columns.",
          "Name columns in PARTITIONED BY.");
    }
    return String.join(".", ((NamedReference) transform.references()[0]).fieldNames());
  }

  /** A column without the length of its texts, which no table keeps, as it keeps no default. */
  static StructField kept(StructField column, boolean isPlain) {
    if (!isPlain) {
      throw LakewardenException.of(
          "UNSUPPORTED_COLUMN_DEFAULT",
          "0A000",
          "Column " + column.name() + " can't have a default or be generated.",
          "A Hudi table does not keep them.",
          "Name the values where rows are inserted.");
    }
    return new StructField(
        column.name(),
        CharVarcharUtils.replaceCharVarcharWithString(column.dataType()),
        column.nullable(),
        column.metadata());
  }

  /** Gives our format a name that Spark finds, before it looks for it. */
  static final class Naming extends PlanRule {
    Naming(SparkSession session) {
      super(session);
    }

    @Override
    protected LogicalPlan instead(LogicalPlan node) {
      Object spec = null;
      for (int i = 0; i < node.productArity(); i++) {
        if (node.productElement(i) instanceof UnresolvedTableSpec found) {
          spec = found;
        }
      }
      if (spec == null || !TableRelations.isOurs(provider(spec))) {
        return null;
      }
      Expression marked = marked((UnresolvedTableSpec) spec);
      Object[] parts = new Object[node.productArity()];
      for (int i = 0; i < parts.length; i++) {
        parts[i] = node.productElement(i) == spec ? marked : node.productElement(i);
      }
      return (LogicalPlan) node.makeCopy(parts);
    }

    private static Expression marked(UnresolvedTableSpec spec) {
      Object[] parts = new Object[spec.productArity()];
      String mark = provider(spec).equalsIgnoreCase(TableRelations.FORMAT) ? MARK : HUDI_MARK;
      for (int i = 0; i < parts.length; i++) {
        parts[i] =
            spec.productElement(i) == spec.provider() ? Option.apply(mark) : spec.productElement(i);
      }
      return (Expression) spec.makeCopy(parts);
    }
  }
}
