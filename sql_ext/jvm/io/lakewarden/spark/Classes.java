package io.lakewarden.spark;

import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Map;
import scala.Option;

/** Which of Spark's classes this Spark has, and objects of those that change their shape. */
final class Classes {
  static final boolean PROCEDURE_COMMANDS =
      has("org.apache.spark.sql.execution.command.ShowProceduresCommand");
  static final boolean VARIABLES =
      has("org.apache.spark.sql.catalyst.expressions.VariableReference");
  static final boolean SCRIPT_CONTEXT =
      has("org.apache.spark.sql.catalyst.SqlScriptingContextManager");

  private Classes() {}

  private static boolean has(String name) {
    try {
      Class.forName(name, false, Classes.class.getClassLoader());
      return true;
    } catch (ClassNotFoundException missing) {
      return false;
    }
  }

  /**
   * An object by its longest constructor: the parts that are given by their place, and nothing for
   * the optional rest, to which Spark adds from release to release.
   */
  static <T> T made(Class<T> type, Map<Integer, Object> given) {
    Constructor<?> longest =
        Arrays.stream(type.getConstructors())
            .max(Comparator.comparingInt(Constructor::getParameterCount))
            .orElseThrow();
    Object[] parts = new Object[longest.getParameterCount()];
    Arrays.fill(parts, Option.empty());
    given.forEach((place, part) -> parts[place] = part);
    try {
      return type.cast(longest.newInstance(parts));
    } catch (ReflectiveOperationException unknown) {
      throw new IllegalStateException("Spark's " + type.getSimpleName() + " has changed.", unknown);
    }
  }
}
