package io.lakewarden.spark;

import java.lang.reflect.Constructor;
import java.util.Map;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.Option;

/** A statement of ours that can't be parsed: Spark's own error, pointing at the word. */
final class SyntaxError {
  private static final String CONDITION = "PARSE_SYNTAX_ERROR";

  private SyntaxError() {}

  static ParseException of(Map<?, ?> error) {
    Origin origin =
        Classes.made(
            Origin.class,
            Map.of(0, Option.apply(error.get("line")), 1, Option.apply(error.get("position"))));
    Map<String, String> parts =
        Map.of("error", (String) error.get("word"), "hint", ": " + error.get("hint"));
    return made(
        Option.apply((String) error.get("statement")),
        origin,
        LakewardenException.asScala(parts));
  }

  /** Until Spark 4.0 the constructor wants the end of the word, too. */
  private static ParseException made(Object statement, Origin place, Object parts) {
    Object[] given = {statement, place, CONDITION, parts};
    Object[] formerly = {statement, place, place, CONDITION, parts};
    for (Constructor<?> one : ParseException.class.getConstructors()) {
      boolean takesPlace = one.getParameterTypes()[0] == Option.class;
      int count = one.getParameterCount();
      try {
        if (takesPlace && count == given.length) {
          return (ParseException) one.newInstance(given);
        }
        if (takesPlace && count == formerly.length) {
          return (ParseException) one.newInstance(formerly);
        }
      } catch (ReflectiveOperationException unknown) {
        throw new IllegalStateException("Spark's ParseException has changed.", unknown);
      }
    }
    throw new IllegalStateException("Spark's ParseException has changed.");
  }
}
