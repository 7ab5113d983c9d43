package io.lakewarden.spark;

import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import scala.collection.immutable.Seq;

/** DROP TABLE: the entry goes, and with a table that Spark manages its files. */
public final class Drop extends CommandNode {
  private final TableIdentifier name;
  private final boolean ifExists;
  private final boolean purge;

  Drop(TableIdentifier name, boolean ifExists, boolean purge) {
    super(name, ifExists, purge);
    this.name = name;
    this.ifExists = ifExists;
    this.purge = purge;
  }

  @Override
  public Seq<Row> run(SparkSession any) {
    var session = (org.apache.spark.sql.classic.SparkSession) any;
    String path = new TableRelations(session).pathOf(name);
    RemovalStatements.check("DROP TABLE", path == null ? List.of() : List.of(path));
    session.sessionState().catalog().dropTable(name, ifExists, purge);
    return TableWrite.none();
  }

  @Override
  public String nodeName() {
    return "Lakewarden drop " + name.unquotedString();
  }
}
