package io.lakewarden.spark;

import io.lakewarden.spark.LakeTable.Role;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Finds the names of our tables in a statement before Spark looks for them: it knows neither
 * their format nor what a Hudi table was at an earlier time.
 */
final class TableRelations extends PlanRule {
  static final String FORMAT = "lakewarden";
  static final String HUDI = "hudi";
  /** Whether tables USING hudi are ours; by default where Hudi's own classes are not. */
  private static final String TAKES_HUDI = "lakewarden.sql.hudi.tables";

  private static final String READ_OPTIMIZED = "hoodie.query.as.ro.table";
  private static final String QUERY_TYPE = "hoodie.datasource.query.type";

  private static final String WRITES = "__required_write_privileges__";
  static final String SESSION_CATALOG = "spark_catalog";

  TableRelations(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (node instanceof UnresolvedRelation relation) {
      Found found = found(relation);
      return found == null ? null : found.named();
    }
    if (node instanceof InsertIntoStatement insert
        && insert.table() instanceof UnresolvedRelation relation) {
      Found found = found(relation);
      if (found != null) {
        InsertedColumns.check(insert, found.table());
      }
      return found == null ? null : withPart(insert, relation, found.relation());
    }
    if (node instanceof V2WriteCommand && node.productElement(0) instanceof LogicalPlan target) {
      LakeTable read = LakeRelations.tableOf(target);
      if (read != null && read.isRead()) {
        // What the format's own source gives does not say what it is wanted for.
        return withPart(node, target, new Found(read.inRole(Role.WRITTEN), null, null).relation());
      }
      Found found = target instanceof UnresolvedRelation relation ? found(relation) : loaded(target);
      return found == null ? null : withPart(node, target, found.relation());
    }
    if (node instanceof RelationTimeTravel travel
        && travel.relation() instanceof UnresolvedRelation relation) {
      Found found = found(relation);
      return found == null ? null : travel.copy(found.named(), travel.timestamp(), travel.version());
    }
    if (node instanceof MergeIntoTable merge) {
      LogicalPlan target = merge.targetTable().transformUp(replacing(TableRelations::merged));
      return target == merge.targetTable() ? null : withPart(merge, merge.targetTable(), target);
    }
    if (node instanceof UnresolvedTableOrView table) {
      return resolved(table.multipartIdentifier());
    }
    return node instanceof UnresolvedTable table ? resolved(table.multipartIdentifier()) : null;
  }

  private static LogicalPlan merged(LogicalPlan node) {
    LakeTable table = LakeRelations.tableOf(node);
    return table == null || table.isMerged()
        ? null
        : LakeRelations.withTable((DataSourceV2Relation) node, table.inRole(Role.MERGED));
  }

  private LogicalPlan resolved(Seq<String> name) {
    Found found = found(CollectionConverters.asJava(name), Map.of(), Role.WRITTEN);
    return found == null
        ? null
        : ResolvedTable$.MODULE$.create((TableCatalog) found.catalog, found.identifier, found.table);
  }

  /** The table of a name that saveAsTable has looked up by itself, as what `save` writes to. */
  private Found loaded(LogicalPlan target) {
    if (!(target instanceof DataSourceV2Relation relation)
        || !(relation.table() instanceof PythonTable)
        || relation.catalog().isEmpty()
        || relation.identifier().isEmpty()) {
      return null;
    }
    List<String> name = new ArrayList<>(List.of(relation.catalog().get().name()));
    name.addAll(List.of(relation.identifier().get().namespace()));
    name.add(relation.identifier().get().name());
    return found(name, Map.of(), Role.WRITTEN);
  }

  private Found found(UnresolvedRelation relation) {
    if (relation.isStreaming()) {
      return null;
    }
    Map<String, String> options = new HashMap<>(relation.options().asCaseSensitiveMap());
    Role role = options.remove(WRITES) == null ? Role.READ : Role.WRITTEN;
    return found(CollectionConverters.asJava(relation.multipartIdentifier()), options, role);
  }

  /** The table of a name, if it is one of ours. */
  Found found(List<String> name, Map<String, String> options, Role role) {
    TableIdentifier identifier = identifier(name);
    if (identifier == null) {
      return null;
    }
    CatalogTable entry = entry(identifier);
    if (entry == null || !isOurs(entry) || entry.storage().locationUri().isEmpty()) {
      return null;
    }
    Map<String, String> all = ofStorage(CollectionConverters.asJava(entry.storage().properties()));
    all.putAll(options);
    if (role == Role.READ && isReadOptimized(entry)) {
      all.putIfAbsent(QUERY_TYPE, "read_optimized");
    }
    return new Found(
        LakeTable.open(pathOf(entry.storage().locationUri().get()), all, role),
        new Catalogs(session).owner(SESSION_CATALOG),
        Identifier.of(new String[] {identifier.database().get()}, identifier.table()));
  }

  /** Whether an entry shows base files only, as those that Hudi registers by the name `t_ro`. */
  private static boolean isReadOptimized(CatalogTable entry) {
    Map<String, String> said = new HashMap<>(CollectionConverters.asJava(entry.properties()));
    said.putAll(CollectionConverters.asJava(entry.storage().properties()));
    return "true".equalsIgnoreCase(said.get(READ_OPTIMIZED));
  }

  /** The name in the session catalog; null for what is a view of the session, or elsewhere. */
  private TableIdentifier identifier(List<String> name) {
    SessionCatalog catalog = session.sessionState().catalog();
    Catalogs catalogs = new Catalogs(session);
    List<String> home = CollectionConverters.asJava(AnalysisContext.get().catalogAndNamespace());
    if (isView(name, home, catalog)) {
      return null;
    }
    String catalogName = home.isEmpty() ? catalogs.current().name() : home.get(0);
    String[] namespace =
        home.isEmpty()
            ? catalogs.currentNamespace()
            : home.subList(1, home.size()).toArray(String[]::new);
    int size = name.size();
    if (size == 3) {
      catalogName = name.get(0);
    }
    if (size == 2 && Catalogs.isCatalog(name.get(0))) {
      return null;
    }
    if (size > 3 || !catalogName.equals(SESSION_CATALOG)) {
      return null;
    }
    if (size == 1 && namespace.length != 1) {
      return null;
    }
    String database = size == 1 ? namespace[0] : name.get(size - 2);
    return new TableIdentifier(name.get(size - 1), Option.apply(database));
  }

  /** The name in the session catalog of an entry of ours; null if it is none. */
  TableIdentifier ours(ResolvedIdentifier name) {
    String[] namespace = name.identifier().namespace();
    if (!name.catalog().name().equals(SESSION_CATALOG) || namespace.length != 1) {
      return null;
    }
    TableIdentifier identifier =
        new TableIdentifier(name.identifier().name(), Option.apply(namespace[0]));
    CatalogTable entry = entry(identifier);
    return entry != null && isOurs(entry) ? identifier : null;
  }

  /** Where an entry of ours has its files; null if it is none, or says nothing of it. */
  String pathOf(TableIdentifier name) {
    CatalogTable entry = entry(name);
    return entry == null || !isOurs(entry) || entry.storage().locationUri().isEmpty()
        ? null
        : pathOf(entry.storage().locationUri().get());
  }

  /** The options that lead to the files of an entry of ours; null if it is none. */
  Map<String, String> placeOf(TableIdentifier name) {
    String path = pathOf(name);
    if (path == null) {
      return null;
    }
    Map<String, String> storage = CollectionConverters.asJava(entry(name).storage().properties());
    Map<String, String> place = ofStorage(storage);
    place.put("path", path);
    return place;
  }

  private static boolean isView(List<String> name, List<String> home, SessionCatalog catalog) {
    Seq<String> parts = CollectionConverters.asScala(name).toSeq();
    if (home.isEmpty()) {
      return catalog.isTempView(parts);
    }
    return AnalysisContext.get().referredTempViewNames().contains(parts);
  }

  private CatalogTable entry(TableIdentifier identifier) {
    SessionCatalog catalog = session.sessionState().catalog();
    try {
      return catalog.tableExists(identifier) ? catalog.getTableMetadata(identifier) : null;
    } catch (Exception gone) {
      // Spark looks for it as well, and says better what is wrong.
      return null;
    }
  }

  private static boolean isOurs(CatalogTable entry) {
    String provider = entry.provider().isDefined() ? entry.provider().get() : "";
    return isOurs(provider);
  }

  /** Whether a provider's tables are ours in this session. */
  static boolean isOurs(String provider) {
    boolean isHudi =
        provider.equalsIgnoreCase(HUDI) || provider.equalsIgnoreCase("org.apache.hudi");
    return provider.equalsIgnoreCase(FORMAT) || (isHudi && takesHudi());
  }

  private static boolean takesHudi() {
    SQLConf conf = SQLConf.get();
    String said = conf.getConfString(TAKES_HUDI, conf.getConfString("spark." + TAKES_HUDI, ""));
    return said.isEmpty() ? !hudiIsThere() : said.equalsIgnoreCase("true");
  }

  static boolean hudiIsThere() {
    try {
      ClassLoader loader = Thread.currentThread().getContextClassLoader();
      Class.forName("org.apache.hudi.DefaultSource", false, loader);
      return true;
    } catch (ClassNotFoundException absent) {
      return false;
    }
  }

  /** Those of some options that say how to get to the storage. */
  static Map<String, String> ofStorage(Map<String, String> options) {
    Map<String, String> chosen = new HashMap<>(options);
    chosen.keySet().removeIf(key -> !key.startsWith(LakeTable.STORAGE_PREFIX));
    return chosen;
  }

  static String pathOf(URI place) {
    boolean isLocal = place.getScheme() == null || place.getScheme().equals("file");
    return isLocal ? place.getPath() : place.toString();
  }

  /** The same node with something else in the place of one of its parts. */
  static LogicalPlan withPart(LogicalPlan node, TreeNode<?> before, TreeNode<?> after) {
    Object[] parts = new Object[node.productArity()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = node.productElement(i) == before ? after : node.productElement(i);
    }
    return (LogicalPlan) node.makeCopy(parts);
  }

  /** A table of ours under the name it was found by. */
  record Found(LakeTable table, CatalogPlugin catalog, Identifier identifier) {
    LogicalPlan relation() {
      return DataSourceV2Relation.create(table, Option.apply(catalog), Option.apply(identifier));
    }

    LogicalPlan named() {
      List<String> parts = List.of(SESSION_CATALOG, identifier.namespace()[0], identifier.name());
      return SubqueryAlias$.MODULE$.apply(CollectionConverters.asScala(parts).toSeq(), relation());
    }
  }
}
