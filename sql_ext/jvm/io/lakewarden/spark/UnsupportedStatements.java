package io.lakewarden.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.AlterTableCommand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/** Statements that have no meaning for a table of ours are refused with what to do instead. */
final class UnsupportedStatements extends PlanRule {
  private static final Refusal PARTITIONS_COME_WITH_ROWS =
      new Refusal(
          "Partitions can't be added to %s, nor searched for.",
          "They come with the rows that are written to them.",
          "INSERT the rows; SHOW PARTITIONS tells what is there.");
  private static final Refusal NO_STATISTICS_OF_SPARK =
      new Refusal(
          "ANALYZE TABLE has nothing to do for %s.",
          "The table keeps its own statistics, true with every write.",
          "CALL show_indexes tells which; CREATE INDEX adds some.");
  private static final Refusal NOTHING_BUT_ROWS =
      new Refusal(
          "ALTER TABLE can't change %s.",
          "The catalog would say something else than the table.",
          "Columns come with rows that are written; properties are set when a table is created.");
  private static final Refusal DESCRIBED_AS_STATE =
      new Refusal(
          "Partitions of %s can't be described by themselves.",
          "The catalog knows nothing of them.",
          "Ask lakewarden_partitions('name of the table') in a SELECT.");
  // By name: not every release of Spark has every one of these classes.
  private static final Map<String, Refusal> REFUSALS =
      Map.ofEntries(
          Map.entry("AddPartitions", PARTITIONS_COME_WITH_ROWS),
          Map.entry("RecoverPartitions", PARTITIONS_COME_WITH_ROWS),
          Map.entry("RepairTable", PARTITIONS_COME_WITH_ROWS),
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
                  "A partition's name is what its rows have in the partition columns.",
                  "UPDATE the partition columns of the rows.")),
          Map.entry(
              "LoadData",
              new Refusal(
                  "Files can't be loaded into %s.",
                  "Their rows need keys, and a commit that knows of them.",
                  "INSERT INTO the table SELECT * FROM parquet.`/path/of/the/files`.")),
          Map.entry(
              "DescribeRelationJsonCommand",
              new Refusal(
                  "%s can't be described as JSON.",
                  "Spark does so for tables of its own formats only.",
                  "Use DESCRIBE TABLE EXTENDED, or CALL show_table_properties.")),
          Map.entry(
              "CreateTableLike",
              new Refusal(
                  "No table can be created like %s.",
                  "What its rows are known by is not a part of its columns.",
                  "Use CREATE TABLE with what SHOW CREATE TABLE says.")));

  UnsupportedStatements(SparkSession session) {
    super(session);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    Refusal refusal = REFUSALS.get(node.getClass().getSimpleName());
    if (refusal == null && node instanceof AlterTableCommand) {
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

  /** What is refused of a table, why, and what to do instead. */
  private record Refusal(String what, String why, String now) {
    RuntimeException of(LakeTable table) {
      String code = this == NOTHING_BUT_ROWS ? "UNSUPPORTED_ALTER_TABLE" : "UNSUPPORTED_STATEMENT";
      return LakewardenException.of(code, "0A000", what.formatted(table.name()), why, now);
    }
  }
}
