package io.lakewarden.spark;

import java.util.regex.Pattern;

/**
 * Whether a statement may be one that Spark has no grammar for, by its first words. Everything
 * else goes to Spark untouched, so this must cost next to nothing and never miss one of ours.
 */
final class StatementHead {
  private static final Pattern OURS =
      Pattern.compile(
          "(?:CREATE|DROP|REFRESH)\\s+INDEX\\b"
              + "|SHOW\\s+INDEX(?:ES)?\\b"
              + "|(?:RUN|SCHEDULE|SHOW)\\s+COMPACTION\\s+ON\\b"
              // A call without parentheses.
              + "|CALL\\s+[\\w`.]++\\s*+(?!\\()"
              // Inside of these any of them may stand.
              + "|EXPLAIN\\b|BEGIN\\b",
          Pattern.CASE_INSENSITIVE);

  private StatementHead() {}

  static boolean mayBeOurs(String statement) {
    int start = afterBlanks(statement);
    return OURS.matcher(statement).region(start, statement.length()).lookingAt();
  }

  /** Where the first word begins. A loop: a pattern would need a stack as deep as the comments. */
  static int afterBlanks(String text) {
    int at = 0;
    while (at < text.length()) {
      if (Character.isWhitespace(text.charAt(at))) {
        at++;
      } else if (text.startsWith("--", at)) {
        int end = text.indexOf('\n', at);
        at = end < 0 ? text.length() : end + 1;
      } else if (text.startsWith("/*", at)) {
        int end = text.indexOf("*/", at + 2);
        at = end < 0 ? text.length() : end + 2;
      } else {
        return at;
      }
    }
    return at;
  }
}
