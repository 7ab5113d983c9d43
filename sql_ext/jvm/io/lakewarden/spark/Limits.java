package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;

/** What a server's owner allows, of what Spark does by itself. */
final class Limits {
  private Limits() {}

  /** Whether a statement of a client is worked on, at a server with limits. */
  static boolean hold() {
    return !PythonBridge.isAnswering() && Statement.isLimited();
  }

  /**
   * Refuse a statement that reads, or changes, what is at some places, unless that is allowed; where
   * the places are, with links followed.
   */
  static List<String> check(String what, boolean changes, List<String> paths) {
    List<String> found = new ArrayList<>();
    Object resolved =
        PythonBridge.ask(
            "check_statement",
            "what", what,
            "changes", changes,
            "paths", new ArrayList<>(paths),
            "permissions", Statement.permissions());
    ((List<?>) resolved).forEach(one -> found.add((String) one));
    return found;
  }

  static RuntimeException refusal(String what) {
    return LakewardenException.of(
        "STATEMENT_NOT_ALLOWED",
        "42501",
        what + " is not allowed here.",
        "This server limits statements to allowed folders, and the files of this one are unknown.",
        "Use tables of the format lakewarden or files in the allowed folders, or ask the server's"
            + " owner.");
  }
}
