package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.PartitionSpec;
import org.apache.spark.sql.catalyst.analysis.UnresolvedPartitionSpec;
import org.apache.spark.sql.catalyst.plans.logical.AddPartitions;
import org.apache.spark.sql.catalyst.plans.logical.DropPartitions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RecoverPartitions;
import org.apache.spark.sql.catalyst.plans.logical.RepairTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowPartitions;
import org.apache.spark.sql.catalyst.plans.logical.TruncatePartition;
import org.apache.spark.sql.catalyst.plans.logical.TruncateTable;
import org.apache.spark.sql.catalyst.plans.logical.UnaryCommand;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;

/**
 * TRUNCATE TABLE, ALTER TABLE ... DROP PARTITION and SHOW PARTITIONS: the engine's, as which
 * partitions there are stands in the table, not in the catalog.
 */
final class PartitionStatements extends PlanRule {
  PartitionStatements(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (node instanceof TruncateTable statement) {
      LakeTable table = LakeRelations.namedBy(statement.table());
      return table == null ? null : new PartitionCommand("truncate_table", table, Map.of());
    }
    if (node instanceof TruncatePartition statement) {
      LakeTable table = LakeRelations.namedBy(statement.table());
      return table == null ? null : drop(table, List.of(statement.partitionSpec()), false);
    }
    if (node instanceof DropPartitions statement) {
      LakeTable table = LakeRelations.namedBy(statement.table());
      List<PartitionSpec> specs = CollectionConverters.asJava(statement.parts());
      return table == null ? null : drop(table, specs, statement.ifExists());
    }
    if (node instanceof AddPartitions statement) {
      LakeTable table = LakeRelations.namedBy(statement.table());
      List<PartitionSpec> specs = CollectionConverters.asJava(statement.parts());
      if (table != null && specs.stream().anyMatch(PartitionStatements::isElsewhere)) {
        throw LakewardenException.of(
            "UNSUPPORTED_PARTITION_LOCATION",
            "0A000",
            "A partition of " + table.name() + " can't have a location of its own.",
            "The files of a partition lie in its folder of the table.",
            "Leave out LOCATION.");
      }
      return table == null
          ? null
          : new PartitionCommand(
              "add_partitions", table, named(table, specs, "if_not_exists", statement.ifNotExists()));
    }
    if (node instanceof RepairTable || node instanceof RecoverPartitions) {
      // Which partitions there are stands in the table, so that none can be missing.
      LakeTable table = LakeRelations.namedBy(((UnaryCommand) node).child());
      return table == null ? null : new PartitionCommand("check_partitions", table, Map.of());
    }
    if (node instanceof ShowPartitions statement) {
      LakeTable table = LakeRelations.namedBy(statement.table());
      Map<String, Object> asked = new HashMap<>();
      boolean isSome = table != null && statement.pattern().isDefined();
      asked.put("values", isSome ? values(table, statement.pattern().get()) : Map.of());
      return table == null
          ? null
          : new PartitionCommand("show_partitions", table, asked, statement.output());
    }
    return null;
  }

  private static LogicalPlan drop(LakeTable table, List<PartitionSpec> specs, boolean ifExists) {
    return new PartitionCommand("drop_partitions", table, named(table, specs, "if_exists", ifExists));
  }

  private static Map<String, Object> named(
      LakeTable table, List<PartitionSpec> specs, String flag, boolean value) {
    List<Object> named = new ArrayList<>(specs.stream().map(one -> values(table, one)).toList());
    return Map.of("partitions", named, flag, value);
  }

  private static boolean isElsewhere(PartitionSpec spec) {
    return ((UnresolvedPartitionSpec) spec).location().isDefined();
  }

  /** What a statement says of each column; Spark has not looked at it. */
  private static Map<String, String> values(LakeTable table, PartitionSpec spec) {
    Map<String, String> values =
        new HashMap<>(CollectionConverters.asJava(((UnresolvedPartitionSpec) spec).spec()));
    for (StructField column : table.ownSchema().fields()) {
      if (column.dataType() instanceof TimestampType) {
        values.replaceAll(
            (name, text) -> name.equalsIgnoreCase(column.name()) ? moment(text) : text);
      }
    }
    return values;
  }

  /** A moment that does not depend on the session's zone; what is none stays as it is. */
  private static String moment(String text) {
    if (text == null) {
      return null;
    }
    var zone = DateTimeUtils.getZoneId(SQLConf.get().sessionLocalTimeZone());
    var found = DateTimeUtils.stringToTimestamp(UTF8String.fromString(text), zone);
    return found.isDefined() ? "micros:" + found.get() : text;
  }
}
