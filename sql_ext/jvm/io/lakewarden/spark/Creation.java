package io.lakewarden.spark;

import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils$;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/** CREATE TABLE, as one command: the table on storage, its entry in the catalog, and its rows. */
public final class Creation extends CommandNode {
  private final TableIdentifier name;
  private final StructType columns;
  private final List<String> partitions;
  private final Map<String, String> properties;
  private final String location;
  private final String provider;
  private final String comment;
  private final boolean ifNotExists;
  private final LogicalPlan query;

  Creation(
      Identifier identifier,
      StructType columns,
      List<String> partitions,
      Map<String, String> properties,
      String location,
      String provider,
      String comment,
      boolean ifNotExists,
      LogicalPlan query) {
    super(identifier, columns, partitions, properties, location, provider, comment, ifNotExists, query);
    this.name = new TableIdentifier(identifier.name(), Option.apply(identifier.namespace()[0]));
    this.columns = columns;
    this.partitions = partitions;
    this.properties = properties;
    this.location = location;
    this.provider = provider;
    this.comment = comment;
    this.ifNotExists = ifNotExists;
    this.query = query;
  }

  @Override
  public Seq<Row> run(SparkSession any) {
    var session = (org.apache.spark.sql.classic.SparkSession) any;
    SessionCatalog catalog = session.sessionState().catalog();
    if (catalog.tableExists(name)) {
      if (!ifNotExists) {
        throw LakewardenException.of(
            "TABLE_EXISTS",
            "42P07",
            "There is a table " + name.unquotedString() + " already.",
            "The catalog has an entry of that name.",
            "Drop it, choose another name, or write IF NOT EXISTS.");
      }
      return TableWrite.none();
    }
    if (location == null) {
      createManaged(catalog);
    } else {
      URI place = CatalogUtils$.MODULE$.stringToURI(location);
      Map<?, ?> made = onStorage(TableRelations.pathOf(place));
      register(catalog, CatalogTableType.EXTERNAL(), place, made);
      try {
        fill(TableRelations.pathOf(place));
      } catch (Throwable failed) {
        // The table has no row; the same statement takes it, when its rows are right.
        catalog.dropTable(name, true, false);
        throw failed;
      }
    }
    return TableWrite.none();
  }

  /** The entry comes first: the catalog refuses a place that is taken. */
  private void createManaged(SessionCatalog catalog) {
    if (columns.isEmpty()) {
      throw LakewardenException.of(
          "NO_COLUMNS",
          "42601",
          "The table has neither columns nor a location.",
          "Only an existing table has columns by itself.",
          "Add columns, or LOCATION with the path of a table.");
    }
    URI place = catalog.defaultTablePath(name);
    RemovalStatements.check("CREATE TABLE", List.of(TableRelations.pathOf(place)));
    register(catalog, CatalogTableType.MANAGED(), place, null);
    try {
      onStorage(TableRelations.pathOf(place));
      fill(TableRelations.pathOf(place));
    } catch (Throwable failed) {
      catalog.dropTable(name, true, false);
      throw failed;
    }
  }

  private Map<?, ?> onStorage(String path) {
    return (Map<?, ?>)
        PythonBridge.ask(
            "create_table",
            "path", path,
            "name", name.table(),
            "columns", columns.json(),
            "partitions", partitions,
            "properties", Statement.withStorage(properties),
            "must_be_new", query != null || location == null,
            "permissions", Statement.permissions());
  }

  private void fill(String path) {
    if (query != null) {
      LakeTable table = LakeTable.open(path, TableRelations.ofStorage(properties), LakeTable.Role.WRITTEN);
      new TableWrite("fill", table, query, Map.of()).run(null);
    }
  }

  private void register(
      SessionCatalog catalog, CatalogTableType type, URI place, Map<?, ?> made) {
    StructType schema = made == null ? inOrder() : StructType.fromDDL((String) made.get("columns"));
    List<String> by = partitions;
    if (made != null) {
      by = new ArrayList<>();
      for (Object partition : (List<?>) made.get("partitions")) {
        by.add((String) partition);
      }
    }
    CatalogTable entry =
        CatalogEntries.entry(name, type, place, schema, by, properties, provider, Option.apply(comment));
    catalog.createTable(entry, ifNotExists, true);
  }

  /** The columns as the table has them: those of partitions last, as Spark's own tables. */
  private StructType inOrder() {
    List<StructField> last = new ArrayList<>();
    List<StructField> first = new ArrayList<>(List.of(columns.fields()));
    for (String partition : partitions) {
      first.removeIf(field -> field.name().equals(partition) && last.add(field));
    }
    first.addAll(last);
    return new StructType(first.toArray(StructField[]::new));
  }

  @Override
  public Seq innerChildren() {
    return query == null ? TableWrite.none() : TableWrite.one(query);
  }

  @Override
  public String nodeName() {
    return "Lakewarden create " + name.unquotedString();
  }
}
