package io.lakewarden.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.Option;

/** A statement of ours that can't be parsed: Spark's own error, pointing at the word. */
final class SyntaxError {
  private SyntaxError() {}

  static ParseException of(Map<?, ?> error) {
    Origin origin =
        Classes.made(
            Origin.class,
            Map.of(0, Option.apply(error.get("line")), 1, Option.apply(error.get("position"))));
    return new ParseException(
        Option.apply((String) error.get("statement")),
        origin,
        "PARSE_SYNTAX_ERROR",
        LakewardenException.asScala(
            Map.of("error", (String) error.get("word"), "hint", ": " + error.get("hint"))));
  }
}
