package io.lakewarden.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A statement that writes to a table of ours: it runs once, and never by EXPLAIN. */
public final class TableWrite extends CommandNode {
  private final String kind;
  private final LakeTable table;
  private final LogicalPlan query;
  private final Map<String, Object> details;

  TableWrite(String kind, LakeTable table, LogicalPlan query, Map<String, ?> writeOptions) {
    this(kind, table, query, Map.of("write_options", new HashMap<>(writeOptions)), true);
  }

  private TableWrite(
      String kind, LakeTable table, LogicalPlan query, Map<String, Object> details, boolean whole) {
    super(kind, table, query, details);
    this.kind = kind;
    this.table = table;
    this.query = query;
    this.details = details;
  }

  TableWrite with(String name, Object value) {
    Map<String, Object> more = new HashMap<>(details);
    more.put(name, value);
    return new TableWrite(kind, table, query, more, true);
  }

  @Override
  public Seq<Row> run(SparkSession session) {
    Map<String, Object> all = new HashMap<>(details);
    all.put("settings", Statement.settings());
    long place = PlanRegistry.number();
    PlanRegistry.put(place, this);
    try {
      PythonBridge.ask(
          "write_table",
          "kind", kind,
          "path", table.path(),
          "options", table.options(),
          "details", all,
          "permissions", Statement.permissions(),
          "place", place);
    } finally {
      PlanRegistry.take(place);
    }
    return none();
  }

  /**
   * The rows of this statement, called by Python. Whatever they depend on of the table itself is
   * read at the moment given, which is the one that conflicts with other writers are judged by.
   */
  public Dataset<Row> rows(long moment) {
    LogicalPlan plan =
        query.transformDownWithSubqueries(
            PlanRule.replacing(
                node -> {
                  LakeTable read = LakeRelations.tableOf(node);
                  return read != null && read.isNow(table.path()) && read.moment() != moment
                      ? LakeRelations.withTable((DataSourceV2Relation) node, read.at(moment))
                      : null;
                }));
    return Dataset$.MODULE$.ofRows(org.apache.spark.sql.classic.SparkSession.active(), plan);
  }

  @Override
  public Seq innerChildren() {
    return one(query);
  }

  @Override
  public String nodeName() {
    return "Lakewarden " + kind + " " + table.name();
  }

  static <T> Seq<T> one(T item) {
    return CollectionConverters.asScala(List.of(item)).toSeq();
  }

  @SuppressWarnings("unchecked")
  static <T> Seq<T> none() {
    return (Seq<T>) (Seq<?>) Nil$.MODULE$;
  }
}
