package io.lakewarden.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.AlterTableCommand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/** Statements that have no meaning for a table of ours are refused with what to do instead. */
final class UnsupportedStatements extends PlanRule {
  private static final Refusal NO_STATISTICS_OF_SPARK =
      new Refusal(
          "ANALYZE TABLE is not needed for %s.",
          "The table has statistics of its own, and every write updates them.",
          "CALL show_indexes lists them; CREATE INDEX adds more.");
  private static final Refusal NOTHING_BUT_ROWS =
      new Refusal(
          "ALTER TABLE can't change %s.",
          "The change would reach the catalog, but not the table.",
          "ALTER TABLE changes columns and properties.");
  private static final Refusal DESCRIBED_AS_STATE =
      new Refusal(
          "Partitions of %s can't be described by themselves.",
          "The catalog has no entries for them.",
          "SELECT * FROM lakewarden_partitions('name of the table').");
  // By name: not every release of Spark has every one of these classes.
  private static final Map<String, Refusal> REFUSALS =
      Map.ofEntries(
          Map.entry("AnalyzeTable", NO_STATISTICS_OF_SPARK),
          Map.entry("AnalyzeColumn", NO_STATISTICS_OF_SPARK),
          Map.entry("SetTableSerDeProperties", NOTHING_BUT_ROWS),
          Map.entry("AddCheckConstraint", NOTHING_BUT_ROWS),
          Map.entry("DescribeTablePartition", DESCRIBED_AS_STATE),
          Map.entry("ShowTablePartition", DESCRIBED_AS_STATE),
          Map.entry(
              "RenamePartitions",
              new Refusal(
                  "Partitions of %s can't be renamed.",
                  "The values in its partition columns name a partition.",
                  "UPDATE the partition columns of the rows.")),
          Map.entry(
              "LoadData",
              new Refusal(
                  "Files can't be loaded into %s.",
                  "Their rows need record keys and a commit.",
                  "INSERT INTO the table SELECT * FROM parquet.`/path/of/the/files`.")),
          Map.entry(
              "DescribeRelationJsonCommand",
              new Refusal(
                  "%s can't be described as JSON.",
                  "Spark describes only tables of its own formats as JSON.",
                  "Use DESCRIBE TABLE EXTENDED, or CALL show_table_properties.")),
          Map.entry(
              "CreateTableLike",
              new Refusal(
                  "No table of another format can be created like %s.",
                  "Spark copies entries of its catalog, and the columns are not there.",
                  "Use CREATE TABLE ... AS SELECT.")));

  UnsupportedStatements(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    Refusal refusal = REFUSALS.get(node.getClass().getSimpleName());
    if (refusal == null && node instanceof AlterTableCommand && node.resolved()) {
      refusal = NOTHING_BUT_ROWS;
    }
    if (refusal == null) {
      return null;
    }
    for (LogicalPlan leaf : CollectionConverters.asJava(node.collectLeaves())) {
      LakeTable named = LakeRelations.namedBy(leaf);
      LakeTable table = named == null ? LakeRelations.tableOf(leaf) : named;
      if (table != null) {
        throw refusal.of(table);
      }
    }
    return null;
  }

  static RuntimeException refusal(String kind, LakeTable table) {
    return REFUSALS.get(kind).of(table);
  }

  /** What is refused of a table, why, and what to do instead. */
  private record Refusal(String what, String why, String now) {
    RuntimeException of(LakeTable table) {
      String code = this == NOTHING_BUT_ROWS ? "UNSUPPORTED_ALTER_TABLE" : "UNSUPPORTED_STATEMENT";
      return LakewardenException.of(code, "0A000", what.formatted(table.name()), why, now);
    }
  }
}
