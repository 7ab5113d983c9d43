package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.AlterTableCommand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableChange.AddColumn;
import org.apache.spark.sql.connector.catalog.TableChange.After;
import org.apache.spark.sql.connector.catalog.TableChange.ColumnChange;
import org.apache.spark.sql.connector.catalog.TableChange.ColumnPosition;
import org.apache.spark.sql.connector.catalog.TableChange.DeleteColumn;
import org.apache.spark.sql.connector.catalog.TableChange.RemoveProperty;
import org.apache.spark.sql.connector.catalog.TableChange.RenameColumn;
import org.apache.spark.sql.connector.catalog.TableChange.SetProperty;
import org.apache.spark.sql.connector.catalog.TableChange.UpdateColumnComment;
import org.apache.spark.sql.connector.catalog.TableChange.UpdateColumnNullability;
import org.apache.spark.sql.connector.catalog.TableChange.UpdateColumnPosition;
import org.apache.spark.sql.connector.catalog.TableChange.UpdateColumnType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * ALTER TABLE of columns and properties, COMMENT ON TABLE: Spark says what shall change, the engine
 * changes the table, and the catalog keeps the properties.
 */
final class AlterStatements extends PlanRule {
  AlterStatements(org.apache.spark.sql.classic.SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (!(node instanceof AlterTableCommand statement) || !node.resolved()) {
      return null;
    }
    LakeTable table = LakeRelations.namedBy(statement.table());
    if (table == null) {
      return null;
    }
    List<Map<String, Object>> changes = new ArrayList<>();
    for (TableChange change : CollectionConverters.asJava(statement.changes())) {
      Map<String, Object> described = described(change);
      if (described == null) {
        return null;
      }
      changes.add(described);
    }
    Identifier name = ((ResolvedTable) statement.table()).identifier();
    return new Command(table, name, changes);
  }

  /** A change as Python knows it; null for one that no table of ours can have. */
  private static Map<String, Object> described(TableChange change) {
    if (change instanceof SetProperty set) {
      return Map.of("kind", "set", "key", set.property(), "value", set.value());
    }
    if (change instanceof RemoveProperty unset) {
      return Map.of("kind", "unset", "key", unset.property());
    }
    if (!(change instanceof ColumnChange column)) {
      return null;
    }
    Map<String, Object> described = new HashMap<>();
    described.put("column", String.join(".", column.fieldNames()));
    if (change instanceof AddColumn add) {
      if (add.defaultValue() != null) {
        return null;
      }
      described.put("kind", "add");
      described.put("type", type(add.dataType()));
      described.put("nullable", add.isNullable());
      described.put("comment", add.comment());
      described.putAll(position(add.position()));
    } else if (change instanceof RenameColumn rename) {
      described.put("kind", "rename");
      described.put("name", rename.newName());
    } else if (change instanceof UpdateColumnType update) {
      described.put("kind", "type");
      described.put("type", type(update.newDataType()));
    } else if (change instanceof UpdateColumnNullability update) {
      described.put("kind", "nullable");
      described.put("nullable", update.nullable());
    } else if (change instanceof UpdateColumnComment update) {
      described.put("kind", "comment");
      described.put("comment", update.newComment());
    } else if (change instanceof UpdateColumnPosition move) {
      described.put("kind", "move");
      described.putAll(position(move.position()));
    } else if (change instanceof DeleteColumn drop) {
      described.put("kind", "drop");
      described.put("if_exists", drop.ifExists());
    } else {
      return null;
    }
    return described;
  }

  private static String type(DataType type) {
    return new StructType().add("column", type).json();
  }

  private static Map<String, Object> position(ColumnPosition position) {
    if (position == null) {
      return Map.of();
    }
    return position instanceof After after
        ? Map.of("after", after.column())
        : Map.of("first", true);
  }

  /** The statement, when it runs. */
  static final class Command extends CommandNode {
    private final LakeTable table;
    private final Identifier name;
    private final List<Map<String, Object>> changes;

    Command(LakeTable table, Identifier name, List<Map<String, Object>> changes) {
      super(table, name, changes);
      this.table = table;
      this.name = name;
      this.changes = changes;
    }

    @Override
    public Seq<Row> run(SparkSession any) {
      if (changes.isEmpty()) {
        // DROP COLUMN IF EXISTS of what is not there.
        return TableWrite.none();
      }
      PythonBridge.ask(
          "alter_table",
          "path", table.path(),
          "options", table.options(),
          "changes", new ArrayList<>(changes),
          "settings", Statement.settings(),
          "permissions", Statement.permissions());
      var session = (org.apache.spark.sql.classic.SparkSession) any;
      keepProperties(session.sessionState().catalog());
      return TableWrite.none();
    }

    private void keepProperties(SessionCatalog catalog) {
      Map<String, String> set = new HashMap<>();
      List<String> unset = new ArrayList<>();
      for (Map<String, Object> change : changes) {
        if (change.get("kind").equals("set")) {
          set.put((String) change.get("key"), (String) change.get("value"));
        } else if (change.get("kind").equals("unset")) {
          unset.add((String) change.get("key"));
        }
      }
      if (!set.isEmpty() || !unset.isEmpty()) {
        var identifier = new TableIdentifier(name.name(), Option.apply(name.namespace()[0]));
        CatalogEntries.changeProperties(catalog, identifier, set, unset);
      }
    }

    @Override
    public String nodeName() {
      return "Lakewarden alter " + table.name();
    }
  }
}
