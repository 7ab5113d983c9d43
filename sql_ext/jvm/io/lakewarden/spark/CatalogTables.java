package io.lakewarden.spark;

import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Where a table is that a catalog knows, found without opening it. */
final class CatalogTables {
  private static final String SESSION_CATALOG = "spark_catalog";

  private CatalogTables() {}

  /** Its `path`, `provider` and `properties`; or `known`, the names that there are instead. */
  static Map<String, Object> find(SparkSession session, String name) {
    List<String> parts = parts(session, name);
    if (parts.isEmpty()) {
      return Map.of("unreadable", true);
    }
    Catalogs catalogs = new Catalogs(session);
    CatalogPlugin catalog = catalogs.owner(parts.get(0));
    boolean isNamed = parts.size() > 1 && Catalogs.isCatalog(parts.get(0));
    List<String> rest = isNamed ? parts.subList(1, parts.size()) : parts;
    if (catalog.name().equals(SESSION_CATALOG)) {
      return inSession(session.sessionState().catalog(), rest);
    }
    return inCatalog(catalog, catalogs.currentNamespace(), rest);
  }

  /** The `tables` of a database with their providers; or `known`, the databases that there are. */
  static Map<String, Object> of(SparkSession session, String database) {
    List<String> parts = parts(session, database);
    SessionCatalog catalog = session.sessionState().catalog();
    if (parts.isEmpty() || !catalog.databaseExists(parts.get(parts.size() - 1))) {
      return Map.of("known", tablesOf(catalog, database));
    }
    String name = parts.get(parts.size() - 1);
    Map<String, String> providers = new TreeMap<>();
    for (TableIdentifier table : CollectionConverters.asJava(catalog.listTables(name))) {
      if (table.database().isDefined()) {
        CatalogTable found = metadata(catalog, table);
        providers.put(table.table(), found.provider().getOrElse(() -> found.tableType().name()));
      }
    }
    return Map.of("database", name, "tables", providers);
  }

  private static CatalogTable metadata(SessionCatalog catalog, TableIdentifier table) {
    try {
      return catalog.getTableMetadata(table);
    } catch (Exception gone) {
      throw LakewardenException.rethrow(gone);
    }
  }

  private static List<String> parts(SparkSession session, String name) {
    try {
      return CollectionConverters.asJava(
          session.sessionState().sqlParser().parseMultipartIdentifier(name));
    } catch (Exception unreadable) {
      return List.of();
    }
  }

  /** The session's own catalog says what it has written down; a provider would open the table. */
  private static Map<String, Object> inSession(SessionCatalog catalog, List<String> parts) {
    if (parts.size() > 2) {
      return Map.of("known", List.of());
    }
    String table = parts.get(parts.size() - 1);
    String database = parts.size() == 2 ? parts.get(0) : catalog.getCurrentDatabase();
    try {
      CatalogTable found = catalog.getTableMetadata(new TableIdentifier(table, Option.apply(database)));
      Map<String, Object> entry = new HashMap<>();
      entry.put("provider", found.provider().getOrElse(() -> found.tableType().name()));
      entry.put("properties", new HashMap<>(CollectionConverters.asJava(found.storage().properties())));
      entry.put("path", path(found.location()));
      return entry;
    } catch (Exception missing) {
      return Map.of("known", tablesOf(catalog, database));
    }
  }

  private static List<String> tablesOf(SessionCatalog catalog, String database) {
    List<String> names = new ArrayList<>();
    try {
      for (TableIdentifier one : CollectionConverters.asJava(catalog.listTables(database))) {
        names.add(one.table());
      }
    } catch (Exception noDatabase) {
      for (String one : CollectionConverters.asJava(catalog.listDatabases())) {
        names.add(one);
      }
    }
    return names;
  }

  private static Map<String, Object> inCatalog(
      CatalogPlugin catalog, String[] current, List<String> parts) {
    if (!(catalog instanceof TableCatalog)) {
      return Map.of("known", List.of());
    }
    String[] given = parts.subList(0, parts.size() - 1).toArray(new String[0]);
    String[] namespace = given.length == 0 ? current : given;
    try {
      Identifier identifier = Identifier.of(namespace, parts.get(parts.size() - 1));
      Table found = ((TableCatalog) catalog).loadTable(identifier);
      Map<String, String> properties = new HashMap<>(found.properties());
      Map<String, Object> entry = new HashMap<>();
      entry.put("provider", properties.getOrDefault("provider", catalog.name()));
      entry.put("path", path(URI.create(properties.getOrDefault("location", ""))));
      entry.put("properties", properties);
      return entry;
    } catch (Exception missing) {
      return Map.of("known", List.of());
    }
  }

  /** As users write it: a file's place has no scheme and no escapes. */
  private static String path(URI location) {
    String scheme = location.getScheme();
    return scheme == null || scheme.equals("file") ? location.getPath() : location.toString();
  }
}
