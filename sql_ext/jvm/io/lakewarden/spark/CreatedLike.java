package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * CREATE TABLE ... LIKE, of a table of ours or another one. A table of ours says what rows are
 * known by, too. The plans are known by name: not every release of Spark has both.
 */
final class CreatedLike {
  private static final String ANY = "CreateTableLike";
  private static final String OF_SESSION_CATALOG = "CreateTableLikeCommand";

  private CreatedLike() {}

  /** The creation that a statement asks for; null if the table is to be none of ours. */
  static LogicalPlan of(SparkSession session, LogicalPlan node) {
    String kind = node.getClass().getSimpleName();
    if (kind.equals(ANY) && node.resolved()) {
      LakeTable source = LakeRelations.namedBy((LogicalPlan) node.productElement(1));
      String provider = text(node.productElement(3));
      boolean isOurs = provider == null || TableRelations.isOurs(provider);
      if (source == null || !isOurs || !(node.productElement(0) instanceof ResolvedIdentifier name)) {
        return null;
      }
      return creation(
          name.identifier(),
          source.ownSchema(),
          source.partitions(),
          source.properties(),
          node,
          provider == null ? TableRelations.FORMAT : provider,
          text(node.productElement(2)));
    }
    if (!kind.equals(OF_SESSION_CATALOG)
        || !(node.productElement(0) instanceof TableIdentifier name)
        || text(node.productElement(3)) == null) {
      return null;
    }
    LakeTable ours = ours(session, (TableIdentifier) node.productElement(1));
    if (!TableRelations.isOurs(text(node.productElement(3)))) {
      if (ours != null) {
        throw UnsupportedStatements.refusal(ANY, ours);
      }
      return null;
    }
    CatalogTable source =
        session
            .sessionState()
            .catalog()
            .getTempViewOrPermanentTableMetadata((TableIdentifier) node.productElement(1));
    String database =
        name.database().isDefined()
            ? name.database().get()
            : session.sessionState().catalog().getCurrentDatabase();
    CatalogStorageFormat storage = (CatalogStorageFormat) node.productElement(2);
    return creation(
        Identifier.of(new String[] {database}, name.table()),
        ours == null ? source.schema() : ours.ownSchema(),
        ours == null
            ? CollectionConverters.asJava(source.partitionColumnNames())
            : ours.partitions(),
        ours == null ? Map.of() : ours.properties(),
        node,
        text(node.productElement(3)),
        storage.locationUri().isDefined() ? storage.locationUri().get().toString() : null);
  }

  /** The table of ours to copy, which until Spark 4.0 reaches us by its name only; or null. */
  private static LakeTable ours(SparkSession session, TableIdentifier source) {
    List<String> parts = new ArrayList<>();
    if (source.database().isDefined()) {
      parts.add(source.database().get());
    }
    parts.add(source.table());
    TableRelations.Found found =
        new TableRelations(session).found(parts, Map.of(), LakeTable.Role.READ);
    return found == null ? null : found.table();
  }

  private static LogicalPlan creation(
      Identifier name,
      StructType columns,
      List<String> partitions,
      Map<String, String> known,
      LogicalPlan node,
      String provider,
      String location) {
    List<StructField> kept = new ArrayList<>();
    for (StructField column : columns.fields()) {
      if (!column.name().startsWith("_hoodie_")) {
        kept.add(column);
      }
    }
    Map<String, String> properties = new HashMap<>(known);
    // What a table of ours shows besides its properties.
    properties.keySet().removeAll(List.of("provider", "location"));
    boolean isIfNotExists = false;
    for (int i = 0; i < node.productArity(); i++) {
      if (node.productElement(i) instanceof scala.collection.immutable.Map<?, ?> said) {
        CollectionConverters.asJava(said)
            .forEach((key, value) -> properties.put((String) key, (String) value));
      } else if (node.productElement(i) instanceof Boolean flag) {
        isIfNotExists = flag;
      }
    }
    return new Creation(
        name,
        new StructType(kept.toArray(StructField[]::new)),
        partitions,
        properties,
        location,
        provider.equalsIgnoreCase(TableRelations.HUDI) ? TableRelations.HUDI : TableRelations.FORMAT,
        null,
        isIfNotExists,
        null);
  }

  private static String text(Object said) {
    return said instanceof Option<?> option && option.isDefined() ? (String) option.get() : null;
  }
}
