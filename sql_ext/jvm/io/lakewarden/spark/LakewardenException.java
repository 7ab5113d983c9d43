package io.lakewarden.spark;

import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.collection.immutable.Map$;

/** An error of Lakewarden: its code is the condition, its three parts are the parameters. */
public final class LakewardenException extends AnalysisException {
  private static final String PREFIX = "LAKEWARDEN_";
  // In whose pools a Thrift server's statements run. Elsewhere its classes may be missing.
  private static final String THRIFT_THREADS = "HiveServer2-";

  private final String sqlState;

  private LakewardenException(
      String condition,
      String sqlState,
      String text,
      Map<String, String> parts,
      Option<Object> line,
      Option<Object> position,
      QueryContext[] context) {
    super(
        "[" + condition + "] " + text + " SQLSTATE: " + sqlState,
        line,
        position,
        Option.empty(),
        Option.apply(condition),
        asScala(parts),
        context);
    this.sqlState = sqlState;
  }

  // Not by the constructor, which has a place for it only since Spark 4.1.
  @Override
  public String getSqlState() {
    return sqlState;
  }

  /** Never returns; has a type so that a caller can say `throw`, which the compiler understands. */
  static RuntimeException of(Map<?, ?> error) {
    return of(
        (String) error.get("code"),
        (String) error.get("sql_state"),
        (String) error.get("what"),
        (String) error.get("why"),
        (String) error.get("now"));
  }

  static RuntimeException of(String code, String sqlState, String what, String why, String now) {
    Option<Object> none = Option.empty();
    return raise(made(code, sqlState, what, why, now, none, none, new QueryContext[0]));
  }

  /** The same, pointing at a place in the statement. */
  static RuntimeException at(
      Origin place, String code, String sqlState, String what, String why, String now) {
    return raise(
        made(
            code,
            sqlState,
            what,
            why,
            now,
            place.line(),
            place.startPosition(),
            place.getQueryContext()));
  }

  private static LakewardenException made(
      String code,
      String sqlState,
      String what,
      String why,
      String now,
      Option<Object> line,
      Option<Object> position,
      QueryContext[] context) {
    String condition = register(code, sqlState);
    String text = (what + " " + why + " " + now).trim().replaceAll(" +", " ");
    Map<String, String> parts = Map.of("what", what, "why", why, "now", now);
    return new LakewardenException(condition, sqlState, text, parts, line, position, context);
  }

  /** Make the condition of a code known, and give its name. */
  public static String register(String code, String sqlState) {
    String condition = PREFIX + code;
    Conditions.register(condition, sqlState);
    return condition;
  }

  /** Throw an error of a statement, in the form that its client is shown best. */
  static <E extends Throwable & SparkThrowable> RuntimeException raise(E error) {
    boolean isThrift = Thread.currentThread().getName().startsWith(THRIFT_THREADS);
    return rethrow(isThrift ? ThriftError.of(error) : error);
  }

  /** Spark's exceptions are checked in Java and not in Scala, so its interfaces don't name them. */
  static RuntimeException rethrow(Throwable thrown) {
    Platform.throwException(thrown);
    return null;
  }

  static scala.collection.immutable.Map<String, String> asScala(Map<String, String> pairs) {
    scala.collection.immutable.Map<String, String> all =
        (scala.collection.immutable.Map<String, String>) (Object) Map$.MODULE$.empty();
    for (Map.Entry<String, String> pair : pairs.entrySet()) {
      all = all.updated(pair.getKey(), pair.getValue());
    }
    return all;
  }
}
