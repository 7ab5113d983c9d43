package io.lakewarden.spark;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.Tuple2;

/**
 * Tells the sink of a streaming query that names a table where the table lies: Spark finds the
 * table, and hands its sink the options of the query only.
 */
final class StreamTargets extends PlanRule {
  private final TableRelations relations;

  StreamTargets(SparkSession session) {
    super(session);
    this.relations = new TableRelations(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (!(node instanceof WriteToStreamStatement statement)
        || !(statement.sink() instanceof PythonTable table)
        || statement.catalogAndIdent().isEmpty()) {
      return null;
    }
    Map<String, String> place = placeOf(statement.catalogAndIdent().get());
    if (place == null) {
      return null;
    }
    Object[] parts = new Object[node.productArity()];
    for (int i = 0; i < parts.length; i++) {
      Object part = node.productElement(i);
      parts[i] = part == table ? new Placed(table, place) : part;
    }
    return (LogicalPlan) node.makeCopy(parts);
  }

  private Map<String, String> placeOf(Tuple2<TableCatalog, Identifier> found) {
    String[] namespace = found._2().namespace();
    if (!found._1().name().equals(TableRelations.SESSION_CATALOG) || namespace.length != 1) {
      return null;
    }
    return relations.placeOf(new TableIdentifier(found._2().name(), Option.apply(namespace[0])));
  }

  /** A table whose writers are told its place; what the query says of it itself comes first. */
  private record Placed(SupportsWrite table, Map<String, String> place) implements SupportsWrite {
    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      Map<String, String> all = new HashMap<>(place);
      // Names are told apart whatever letters they are written in.
      info.options().asCaseSensitiveMap().forEach((key, value) -> {
        all.keySet().removeIf(key::equalsIgnoreCase);
        all.put(key, value);
      });
      return table.newWriteBuilder(new Told(info, new CaseInsensitiveStringMap(all)));
    }

    @Override
    public String name() {
      return table.name();
    }

    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
      return table.schema();
    }

    @Override
    public Set<TableCapability> capabilities() {
      return table.capabilities();
    }
  }

  private record Told(LogicalWriteInfo info, CaseInsensitiveStringMap options)
      implements LogicalWriteInfo {
    @Override
    public String queryId() {
      return info.queryId();
    }

    @Override
    public StructType schema() {
      return info.schema();
    }
  }
}
