package io.lakewarden.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.Option;

/** A statement of ours that can't be parsed: Spark's own error, pointing at the word. */
final class SyntaxError {
  private SyntaxError() {}

  static ParseException of(Map<?, ?> error) {
    Option<Object> none = Option.empty();
    Option<String> nothing = Option.empty();
    Origin origin =
        new Origin(
            Option.apply(error.get("line")),
            Option.apply(error.get("position")),
            none,
            none,
            nothing,
            nothing,
            nothing,
            Option.empty(),
            Option.empty(),
            Option.empty());
    return new ParseException(
        Option.apply((String) error.get("statement")),
        origin,
        "PARSE_SYNTAX_ERROR",
        LakewardenException.asScala(
            Map.of("error", (String) error.get("word"), "hint", ": " + error.get("hint"))));
  }
}
