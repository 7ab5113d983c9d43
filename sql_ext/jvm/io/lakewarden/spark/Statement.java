package io.lakewarden.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.Tuple2;
import scala.collection.Iterator;

/** The statement that a thread works on, as Python asks about it. */
public final class Statement {
  private static final String[] PREFIXES = {"hoodie.", "lakewarden."};
  private static final String S3_OF_HADOOP = "fs.s3a.";
  private static final String[] PERMISSIONS = {"lakewarden.allowed.roots", "lakewarden.read.only"};

  private final Thread thread = Thread.currentThread();
  private final SparkSession session;

  private Statement(SparkSession session) {
    this.session = session;
  }

  public static Statement current() {
    return new Statement(SparkSession.active());
  }

  /** What could be one of a session's statements. */
  public static Statement of(SparkSession session) {
    return new Statement(session);
  }

  /** Whether its client has cancelled it: Thrift and Connect servers interrupt its thread. */
  public boolean isInterrupted() {
    return thread.isInterrupted();
  }

  public SparkSession session() {
    return session;
  }

  /** The table of a name in the session's catalogs, or what stands in its way; pickled. */
  public byte[] table(String name) {
    return PythonBridge.pickled(CatalogTables.find(session, name));
  }

  /** The tables of a database of the session's own catalog; pickled. */
  public byte[] tables(String database) {
    return PythonBridge.pickled(CatalogTables.of(session, database));
  }

  /** What the owner of the server allows: in the context's settings, which no session can change. */
  static Map<String, String> permissions() {
    Map<String, String> permissions = new HashMap<>();
    SparkConf conf = SparkContext$.MODULE$.getActive().get().conf();
    for (String key : PERMISSIONS) {
      for (String spelling : List.of("spark." + key, key)) {
        if (conf.contains(spelling)) {
          permissions.put(key, conf.get(spelling));
        }
      }
    }
    return permissions;
  }

  /** Whether the owner of the server allows anything less than everything. */
  static boolean isLimited() {
    Map<String, String> permissions = permissions();
    return permissions.containsKey(PERMISSIONS[0])
        || !permissions.getOrDefault(PERMISSIONS[1], "false").equalsIgnoreCase("false");
  }

  /** What the session sets for tables, by its own key. */
  static Map<String, String> settings() {
    Map<String, String> settings = new HashMap<>();
    Iterator<Tuple2<String, String>> all = SQLConf.get().getAllConfs().iterator();
    while (all.hasNext()) {
      Tuple2<String, String> setting = all.next();
      String key = setting._1().startsWith("spark.") ? setting._1().substring(6) : setting._1();
      for (String prefix : PREFIXES) {
        if (key.startsWith(prefix)) {
          settings.put(key, setting._2());
        }
      }
      String ofHadoop = key.startsWith("hadoop.") ? key.substring(7) : key;
      if (ofHadoop.startsWith(S3_OF_HADOOP)) {
        settings.putIfAbsent(LakeTable.STORAGE_PREFIX + ofHadoop, setting._2());
      }
    }
    return settings;
  }

  /** Options of a table, behind what the session says of the way to its storage. */
  static Map<String, String> withStorage(Map<String, String> options) {
    Map<String, String> all = TableRelations.ofStorage(settings());
    all.putAll(options);
    return all;
  }
}
