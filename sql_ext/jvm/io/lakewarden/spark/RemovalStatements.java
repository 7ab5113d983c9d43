package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.DropNamespace;
import org.apache.spark.sql.catalyst.plans.logical.DropTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RenameTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.DropDatabaseCommand;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What takes files of tables away, or elsewhere, without a write: DROP TABLE, DROP DATABASE ...
 * CASCADE and ALTER TABLE ... RENAME. They are Spark's own, once they are found to be allowed.
 */
final class RemovalStatements extends PlanRule {
  RemovalStatements(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (node instanceof DropTable drop && drop.child() instanceof ResolvedIdentifier name) {
      TableIdentifier ours = new TableRelations(session).ours(name);
      return ours == null ? null : new Drop(ours, drop.ifExists(), drop.purge());
    }
    if (node instanceof DropNamespace drop
        && drop.cascade()
        && drop.namespace() instanceof ResolvedNamespace namespace
        && namespace.catalog().name().equals(TableRelations.SESSION_CATALOG)) {
      checkAll(namespace.namespace().last());
    }
    if (node instanceof DropDatabaseCommand drop && drop.cascade()) {
      checkAll(drop.databaseName());
    }
    if (node instanceof RenameTable rename && LakeRelations.namedBy(rename.child()) != null) {
      check("ALTER TABLE", List.of(LakeRelations.namedBy(rename.child()).path()));
    }
    return null;
  }

  private void checkAll(String database) {
    SessionCatalog catalog = session.sessionState().catalog();
    if (!catalog.databaseExists(database)) {
      return;
    }
    TableRelations relations = new TableRelations(session);
    List<String> paths = new ArrayList<>();
    for (TableIdentifier name : CollectionConverters.asJava(catalog.listTables(database))) {
      String path = name.database().isDefined() ? relations.pathOf(name) : null;
      if (path != null) {
        paths.add(path);
      }
    }
    if (!paths.isEmpty()) {
      check("DROP DATABASE", paths);
    }
  }

  /** Whether a statement may change what is at some places. */
  static void check(String statement, List<String> paths) {
    PythonBridge.ask(
        "check_change",
        "what", statement,
        "paths", new ArrayList<>(paths),
        "permissions", Statement.permissions());
  }
}
