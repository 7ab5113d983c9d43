package io.lakewarden.spark;

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
    Door.ask("check_change", "what", "DROP TABLE", "permissions", Statement.permissions());
    var session = (org.apache.spark.sql.classic.SparkSession) any;
    session.sessionState().catalog().dropTable(name, ifExists, purge);
    return TableWrite.none();
  }

  @Override
  public String nodeName() {
    return "Lakewarden drop " + name.unquotedString();
  }
}
