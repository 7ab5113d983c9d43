package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.PartitionSpec;
import org.apache.spark.sql.catalyst.analysis.UnresolvedPartitionSpec;
import org.apache.spark.sql.catalyst.plans.logical.DropPartitions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RecoverPartitions;
import org.apache.spark.sql.catalyst.plans.logical.RepairTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowPartitions;
import org.apache.spark.sql.catalyst.plans.logical.TruncatePartition;
import org.apache.spark.sql.catalyst.plans.logical.TruncateTable;
import org.apache.spark.sql.catalyst.plans.logical.UnaryCommand;
import org.apache.spark.sql.classic.SparkSession;
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
    if (node instanceof RepairTable || node instanceof RecoverPartitions) {
      // Which partitions there are stands in the table, so that none can be missing.
      LakeTable table = LakeRelations.namedBy(((UnaryCommand) node).child());
      return table == null ? null : new PartitionCommand("check_partitions", table, Map.of());
    }
    if (node instanceof ShowPartitions statement) {
      LakeTable table = LakeRelations.namedBy(statement.table());
      Map<String, Object> asked = new HashMap<>();
      asked.put("values", statement.pattern().isDefined() ? values(statement.pattern().get()) : Map.of());
      return table == null
          ? null
          : new PartitionCommand("show_partitions", table, asked, statement.output());
    }
    return null;
  }

  private static LogicalPlan drop(LakeTable table, List<PartitionSpec> specs, boolean ifExists) {
    List<Object> named = new ArrayList<>(specs.stream().map(PartitionStatements::values).toList());
    Map<String, Object> asked = Map.of("partitions", named, "if_exists", ifExists);
    return new PartitionCommand("drop_partitions", table, asked);
  }

  /** What a statement says of each column; Spark has not looked at it. */
  private static Map<String, String> values(PartitionSpec spec) {
    return new HashMap<>(CollectionConverters.asJava(((UnresolvedPartitionSpec) spec).spec()));
  }
}
