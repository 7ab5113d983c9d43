package io.lakewarden.spark;

import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.PersistedView$;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.CreateNamespace;
import org.apache.spark.sql.catalyst.plans.logical.DropNamespace;
import org.apache.spark.sql.catalyst.plans.logical.DropTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RenameTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.command.AlterTableRenameCommand;
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand;
import org.apache.spark.sql.execution.command.CreateDataSourceTableCommand;
import org.apache.spark.sql.execution.command.CreateDatabaseCommand;
import org.apache.spark.sql.execution.command.CreateSQLFunctionCommand;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.execution.command.DropDatabaseCommand;
import org.apache.spark.sql.execution.command.DropFunctionCommand;
import org.apache.spark.sql.execution.command.DropTableCommand;
import org.apache.spark.sql.execution.command.InsertIntoDataSourceDirCommand;
import org.apache.spark.sql.execution.command.SetCommand;
import org.apache.spark.sql.execution.datasources.CreateTempViewUsing;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** Judges statements of Spark's own that make, change or remove files at places of theirs. */
final class FileStatements {
  private final SparkSession session;

  FileStatements(SparkSession session) {
    this.session = session;
  }

  /** A statement that its places describe in full: it changes nothing else. */
  void judge(LogicalPlan node) {
    Places places = new Places(session);
    if (node instanceof InsertIntoHadoopFsRelationCommand write) {
      places.options(write.options()).add(write.outputPath()).add(write.catalogTable());
    } else {
      checkProvider(node);
      for (int i = 0; i < node.productArity(); i++) {
        places.add(node.productElement(i));
      }
    }
    change(node, places, List.of());
  }

  private static void checkProvider(LogicalPlan node) {
    if (node instanceof InsertIntoDataSourceDirCommand write) {
      Places.checkProvider(write.provider());
    } else if (node instanceof CreateDataSourceTableCommand made) {
      Places.checkProvider(made.table().provider().getOrElse(() -> ""));
    } else if (node instanceof CreateDataSourceTableAsSelectCommand made) {
      Places.checkProvider(made.table().provider().getOrElse(() -> ""));
    }
  }

  /** A statement of a kind that says too little. */
  void judgeSpecial(LogicalPlan node) {
    if (node instanceof CreateViewCommand view) {
      changeCatalog(node, view.viewType() == PersistedView$.MODULE$);
    } else if (node instanceof CreateSQLFunctionCommand function) {
      changeCatalog(node, !function.isTemp());
    } else if (node instanceof DropFunctionCommand drop) {
      changeCatalog(node, !drop.isTemp());
    } else if (node instanceof CreateTempViewUsing view) {
      Places.checkProviderOrOurs(view.provider());
    } else if (node instanceof SetCommand set) {
      judge(set);
    } else if (node instanceof V2WriteCommand) {
      judgeWrite(node);
    } else if (node instanceof DropTableCommand drop) {
      dropTable(node, drop.tableName());
    } else if (node instanceof DropTable drop) {
      dropTable(node, named(((ResolvedIdentifier) drop.child()).identifier()));
    } else if (node instanceof AlterTableRenameCommand rename) {
      rename(node, rename.oldName(), rename.newName().table(), rename.isView());
    } else if (node instanceof RenameTable rename && LakeRelations.namedBy(rename.child()) != null) {
      renameOurs(rename);
    } else {
      judgeDatabase(node);
    }
  }

  private void judgeDatabase(LogicalPlan node) {
    if (node instanceof CreateDatabaseCommand made) {
      createDatabase(node, made.databaseName(), made.path());
    } else if (node instanceof CreateNamespace made
        && made.name() instanceof ResolvedNamespace name) {
      Option<String> path = made.properties().get("location");
      createDatabase(node, name.namespace().last(), path);
    } else if (node instanceof DropDatabaseCommand drop) {
      dropDatabase(node, drop.databaseName());
    } else if (node instanceof DropNamespace drop
        && drop.namespace() instanceof ResolvedNamespace name) {
      dropDatabase(node, name.namespace().last());
    } else {
      throw Limits.refusal(node.nodeName());
    }
  }

  private static void changeCatalog(LogicalPlan node, boolean changes) {
    Limits.check(node.nodeName(), changes, List.of());
  }

  private static void judge(SetCommand set) {
    if (set.productElement(0) instanceof Option<?> option
        && option.isDefined()
        && option.get() instanceof Tuple2<?, ?> pair) {
      Places.checkSetting(pair._1().toString());
    }
  }

  /** What our data source writes, {@link SourceLimits} has judged. */
  private static void judgeWrite(LogicalPlan node) {
    boolean isOurs =
        node.productElement(0) instanceof DataSourceV2Relation target
            && target.table() instanceof PythonTable table
            && table.name().equalsIgnoreCase(TableRelations.FORMAT);
    if (!isOurs) {
      throw Limits.refusal(node.nodeName());
    }
  }

  private static TableIdentifier named(Identifier name) {
    return new TableIdentifier(name.name(), Option.apply(name.namespace()[0]));
  }

  /** Only with a table that Spark manages its files go. */
  private void dropTable(LogicalPlan node, TableIdentifier name) {
    Places places = new Places(session);
    CatalogTable entry = places.entry(name);
    if (entry != null && isManaged(entry)) {
      places.table(entry);
    }
    change(node, places, List.of());
  }

  /** Files of a managed table go to where one of the new name would be. */
  private void rename(LogicalPlan node, TableIdentifier before, String after, boolean isView) {
    Places places = new Places(session);
    CatalogTable entry = places.entry(before);
    if (!isView && entry != null && isManaged(entry)) {
      places.table(entry).uri(catalog().defaultTablePath(renamed(entry, after)));
    }
    change(node, places, List.of());
  }

  private void renameOurs(RenameTable rename) {
    LakeTable ours = LakeRelations.namedBy(rename.child());
    Places places = new Places(session);
    CatalogTable entry = places.entry(named(((ResolvedTable) rename.child()).identifier()));
    if (entry != null && isManaged(entry)) {
      places.uri(catalog().defaultTablePath(renamed(entry, rename.newName().last())));
    }
    change(rename, places, List.of(ours.path()));
  }

  private static TableIdentifier renamed(CatalogTable entry, String name) {
    return new TableIdentifier(name, entry.identifier().database());
  }

  private void createDatabase(LogicalPlan node, String name, Option<String> path) {
    Places places = new Places(session);
    if (path.isDefined()) {
      places.uri(new Path(path.get()).toUri());
    } else {
      places.database(name);
    }
    // Tables of ours may be in the folder of a database; it is not to be in one of theirs.
    Folders folders = new Folders(session, List.of());
    for (String place : Limits.check(node.nodeName(), true, places.found())) {
      folders.checkAbove(node.nodeName(), place);
    }
  }

  /** The folder goes with all that is in it, whether the catalog knows of it or not. */
  private void dropDatabase(LogicalPlan node, String name) {
    Places places = new Places(session);
    List<String> going = new ArrayList<>();
    if (catalog().databaseExists(name)) {
      TableRelations relations = new TableRelations(session);
      for (TableIdentifier one : CollectionConverters.asJava(catalog().listTables(name))) {
        CatalogTable entry = one.database().isDefined() ? places.entry(one) : null;
        if (entry != null && isManaged(entry)) {
          String ours = relations.pathOf(one);
          if (ours == null) {
            places.table(entry);
          } else {
            going.add(ours);
          }
        }
      }
      places.uri(locationOf(name));
    }
    change(node, places, going);
  }

  private URI locationOf(String database) {
    try {
      return catalog().getDatabaseMetadata(database).locationUri();
    } catch (Exception failed) {
      throw LakewardenException.rethrow(failed);
    }
  }

  private void change(LogicalPlan node, Places places, List<String> spared) {
    String what = node.nodeName();
    List<String> allowed = Limits.check(what, true, places.found());
    Folders folders = new Folders(session, Limits.check(what, false, spared));
    for (String place : allowed) {
      folders.checkAbove(what, place);
      folders.checkBelow(what, place);
    }
  }

  private static boolean isManaged(CatalogTable entry) {
    return entry.tableType().equals(CatalogTableType.MANAGED());
  }

  private SessionCatalog catalog() {
    return session.sessionState().catalog();
  }
}
