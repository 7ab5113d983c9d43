package io.lakewarden.spark;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** What Python has declared: each procedure's name, description and columns. */
final class Declarations {
  private static volatile Map<String, Declaration> all = Map.of();

  private Declarations() {}

  /** One procedure as Spark sees it. */
  static final class Declaration {
    final String name;
    final String description;
    final StructType columns;

    private Declaration(Map<?, ?> given) {
      name = (String) given.get("name");
      description = (String) given.get("description");
      columns = schema((List<?>) given.get("columns"));
    }

    private static StructType schema(List<?> columns) {
      StructType schema = new StructType();
      for (Object column : columns) {
        Object[] pair = (Object[]) column;
        schema = schema.add((String) pair[0], DataType.fromDDL((String) pair[1]));
      }
      return schema;
    }
  }

  static void replace(List<?> given) {
    Map<String, Declaration> declared = new TreeMap<>();
    for (Object one : given) {
      Declaration declaration = new Declaration((Map<?, ?>) one);
      declared.put(declaration.name, declaration);
    }
    all = declared;
  }

  static Set<String> names() {
    return all.keySet();
  }

  static Declaration named(String name) {
    Declaration found = all.get(name.toLowerCase(Locale.ROOT));
    if (found == null) {
      // Python knows the nearest name, and says so.
      PythonBridge.ask("check", "name", name, "positional", 0, "named", List.of());
      found = all.get(name.toLowerCase(Locale.ROOT));
    }
    return found;
  }
}
