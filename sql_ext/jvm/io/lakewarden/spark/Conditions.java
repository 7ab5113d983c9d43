package io.lakewarden.spark;

import java.lang.reflect.Field;
import java.util.Map;
import org.apache.spark.ErrorClassesJsonReader;
import org.apache.spark.ErrorInfo;
import org.apache.spark.SparkThrowableHelper;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * Our conditions among Spark's own. PySpark and Connect look every condition up, and Spark has no
 * way to add one; it reads them from its own file into a map that only reflection can replace.
 */
final class Conditions {
  static final String TEMPLATE = "<what> <why> <now>";

  private Conditions() {}

  @SuppressWarnings("unchecked")
  static synchronized void register(String condition, String sqlState) {
    ErrorClassesJsonReader reader = SparkThrowableHelper.errorReader();
    if (reader.errorInfoMap().contains(condition)) {
      return;
    }
    Seq<String> template = (Seq<String>) (Seq<?>) Nil$.MODULE$.$colon$colon(TEMPLATE);
    try {
      Object state = Option.apply(sqlState);
      ErrorInfo info = Classes.made(ErrorInfo.class, Map.of(0, template, 2, state));
      scala.collection.immutable.Map<String, ErrorInfo> conditions = reader.errorInfoMap().updated(condition, info);
      Field field = ErrorClassesJsonReader.class.getDeclaredField("errorInfoMap");
      field.setAccessible(true);
      field.set(reader, conditions);
    } catch (ReflectiveOperationException unregistered) {
      // The exception itself has all that is to be said; only looking its condition up would fail.
      return;
    }
  }
}
