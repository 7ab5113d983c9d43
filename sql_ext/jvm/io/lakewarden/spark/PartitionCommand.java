package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A statement about the partitions of a table, which Python runs. */
public final class PartitionCommand extends CommandNode {
  private final String operation;
  private final LakeTable table;
  private final Map<String, Object> asked;
  private final Seq<Attribute> output;

  PartitionCommand(String operation, LakeTable table, Map<String, Object> asked) {
    this(operation, table, asked, TableWrite.none());
  }

  PartitionCommand(
      String operation, LakeTable table, Map<String, Object> asked, Seq<Attribute> output) {
    super(operation, table, asked);
    this.operation = operation;
    this.table = table;
    this.asked = asked;
    this.output = output;
  }

  @Override
  public Seq<Attribute> output() {
    return output;
  }

  @Override
  public Seq<Row> run(SparkSession session) {
    List<Object> request =
        new ArrayList<>(
            List.of(
                "path", table.path(),
                "options", table.options(),
                "settings", Statement.settings(),
                "permissions", Statement.permissions()));
    asked.forEach((name, value) -> request.addAll(List.of(name, value)));
    List<Row> rows = new ArrayList<>();
    if (PythonBridge.ask(operation, request.toArray()) instanceof List<?> found) {
      found.forEach(one -> rows.add(RowFactory.create(one)));
    }
    return CollectionConverters.asScala(rows).toSeq();
  }

  @Override
  public String nodeName() {
    return "Lakewarden " + operation + " " + table.name();
  }
}
