package io.lakewarden.spark;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Where the tables, folders and files are that a statement of Spark's names. */
final class Places {
  // Sources that read and write files at a place, and nothing else.
  private static final Set<String> FILES =
      Set.of("parquet", "orc", "csv", "json", "text", "avro", "xml", "binaryfile");
  private static final Set<String> PATHS = Set.of("path", "paths");
  // With these Spark would find other files under the same name.
  private static final String FILE_SYSTEMS = "fs.";
  private static final String CATALOGS = "spark.sql.catalog.";

  private final SparkSession session;
  private final List<String> found = new ArrayList<>();

  Places(SparkSession session) {
    this.session = session;
  }

  List<String> found() {
    return found;
  }

  private SessionCatalog catalog() {
    return session.sessionState().catalog();
  }

  static void checkProvider(String provider) {
    String name = provider.toLowerCase(Locale.ROOT);
    if (!FILES.contains(name)) {
      throw Limits.refusal("The data source " + provider);
    }
  }

  static void checkProviderOrOurs(String provider) {
    if (!provider.equalsIgnoreCase(TableRelations.FORMAT)) {
      checkProvider(provider);
    }
  }

  /** Refuse a setting with which Spark would find other files, or tables, under the same name. */
  static void checkSetting(String key) {
    if (key.startsWith(FILE_SYSTEMS) || key.startsWith(CATALOGS)) {
      throw Limits.refusal("The setting " + key);
    }
  }

  /** The same for those that a session has however they got there; the owner's own are left. */
  static void checkSettings() {
    SparkConf owners = SparkContext$.MODULE$.getActive().get().conf();
    Iterator<Tuple2<String, String>> all = SQLConf.get().getAllConfs().iterator();
    while (all.hasNext()) {
      Tuple2<String, String> setting = all.next();
      boolean isOurs = setting.equals(new Tuple2<>(Procedures.SETTING, Procedures.class.getName()));
      if (!isOurs && !setting._2().equals(owners.get(setting._1(), null))) {
        checkSetting(setting._1());
      }
    }
  }

  /** Whatever part of a statement says a place. */
  Places add(Object part) {
    if (part instanceof Option<?> option) {
      return option.isDefined() ? add(option.get()) : this;
    }
    if (part instanceof CatalogTable table) {
      return table(table);
    }
    if (part instanceof TableIdentifier name) {
      return name(name);
    }
    if (part instanceof CatalogStorageFormat storage) {
      return storage(storage);
    }
    if (part instanceof Path path) {
      return path(path.toString());
    }
    return part instanceof Seq<?> parts && !parts.isEmpty() ? addAll(parts) : this;
  }

  private Places addAll(Seq<?> parts) {
    CollectionConverters.asJava(parts).forEach(this::add);
    return this;
  }

  Places path(String path) {
    found.add(qualified(path));
    return this;
  }

  Places options(Map<String, String> options) {
    for (Map.Entry<String, String> option : options.entrySet()) {
      String key = option.getKey().toLowerCase(Locale.ROOT);
      if (key.startsWith(FILE_SYSTEMS)) {
        throw Limits.refusal("The option " + option.getKey());
      }
      if (PATHS.contains(key)) {
        path(option.getValue());
      }
    }
    return this;
  }

  Places options(scala.collection.Map<String, String> options) {
    return options(CollectionConverters.asJava(options));
  }

  private Places storage(CatalogStorageFormat storage) {
    if (storage.locationUri().isDefined()) {
      uri(storage.locationUri().get());
    }
    return options(storage.properties());
  }

  /** A location; catalogs complete those that begin nowhere, each in a way of its own. */
  Places uri(URI place) {
    Path path = new Path(place);
    if (!path.isAbsolute()) {
      throw Limits.refusal("The relative location " + place);
    }
    return path(path.toString());
  }

  /** The folder of a database that says none. */
  Places database(String name) {
    Path warehouse = new Path(session.sessionState().conf().warehousePath());
    return path(new Path(warehouse, catalog().getDefaultDBPath(name).getPath()).toString());
  }

  /** A table's folder, which may be one to come, and those of its partitions that are elsewhere. */
  Places table(CatalogTable table) {
    storage(table.storage());
    boolean isManaged = table.tableType().equals(CatalogTableType.MANAGED());
    if (isManaged && table.storage().locationUri().isEmpty()) {
      uri(catalog().defaultTablePath(table.identifier()));
    }
    if (!table.partitionColumnNames().isEmpty() && catalog().tableExists(table.identifier())) {
      partitions(table.identifier());
    }
    return this;
  }

  private void partitions(TableIdentifier name) {
    try {
      for (CatalogTablePartition partition :
          CollectionConverters.asJava(catalog().listPartitions(name, Option.empty()))) {
        storage(partition.storage());
      }
    } catch (Exception failed) {
      throw LakewardenException.rethrow(failed);
    }
  }

  /** What a name stands for: a table, or the folder of one to come. */
  Places name(TableIdentifier name) {
    if (catalog().isTempView(name)) {
      return this;
    }
    CatalogTable entry = entry(name);
    return entry == null ? uri(catalog().defaultTablePath(name)) : table(entry);
  }

  CatalogTable entry(TableIdentifier name) {
    try {
      return catalog().tableExists(name) ? catalog().getTableMetadata(name) : null;
    } catch (Exception failed) {
      throw LakewardenException.rethrow(failed);
    }
  }

  /** A path as Spark understands it. */
  private String qualified(String text) {
    Configuration conf = session.sparkContext().hadoopConfiguration();
    try {
      Path path = new Path(text);
      return TableRelations.pathOf(path.getFileSystem(conf).makeQualified(path).toUri());
    } catch (IOException | IllegalArgumentException unknown) {
      // It can't be inside of anything that is allowed.
      return text;
    }
  }
}
