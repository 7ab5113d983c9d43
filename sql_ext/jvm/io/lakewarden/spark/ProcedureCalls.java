package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Calls of procedures, whichever way a Spark has for them: arguments are the fields of a row. Those
 * that are given by their name say so in their metadata.
 */
final class ProcedureCalls {
  /** As Spark has it since 4.0. */
  private static final String BY_NAME = "BY_NAME";

  static final Metadata NAMED = new MetadataBuilder().putBoolean(BY_NAME, true).build();

  private ProcedureCalls() {}

  /** Refuse a call that names what there is not, and types that no argument has. */
  static void check(String name, StructType given) {
    List<String> named = new ArrayList<>();
    for (StructField field : given.fields()) {
      if (!Values.canBe(field.dataType())) {
        throw LakewardenException.of(
            "BAD_ARGUMENT",
            "42804",
            "An argument of " + name + " is of the type " + field.dataType().sql() + ".",
            "No procedure takes arguments of that type.",
            "See DESCRIBE PROCEDURE " + name + ".");
      }
      if (isNamed(field)) {
        named.add(field.name());
      }
    }
    int positional = given.length() - named.size();
    PythonBridge.ask("check", "name", name, "positional", positional, "named", named);
  }

  /** Call a procedure; its rows as Python gives them. */
  static List<?> rows(String name, StructType given, InternalRow values) {
    List<Object> positional = new ArrayList<>();
    Map<String, Object> named = new LinkedHashMap<>();
    StructField[] fields = given.fields();
    for (int i = 0; i < fields.length; i++) {
      Object value = Values.plain(values, i, fields[i].dataType());
      if (isNamed(fields[i])) {
        named.put(fields[i].name(), value);
      } else {
        positional.add(value);
      }
    }
    return (List<?>)
        PythonBridge.ask(
            "call", "name", name, "positional", positional, "named", named,
            "settings", Statement.settings(), "permissions", Statement.permissions());
  }

  private static boolean isNamed(StructField field) {
    return field.metadata().contains(BY_NAME);
  }
}
