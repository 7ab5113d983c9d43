package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A procedure that Python runs. Spark evaluates the arguments. Python matches them to parameters and
 * checks their types, once for SQL and all other callers. So a bound procedure has exactly the
 * parameters that the call gives, in the types of the call.
 */
final class DeclaredProcedure implements UnboundProcedure {
  private final Declarations.Declaration declaration;

  DeclaredProcedure(Declarations.Declaration declaration) {
    this.declaration = declaration;
  }

  @Override
  public String name() {
    return declaration.name;
  }

  @Override
  public String description() {
    return declaration.description;
  }

  @Override
  public BoundProcedure bind(StructType given) {
    List<String> named = new ArrayList<>();
    for (StructField field : given.fields()) {
      if (!Values.canBe(field.dataType())) {
        throw LakewardenException.of(
            "BAD_ARGUMENT",
            "42804",
            "An argument of " + name() + " is of the type " + field.dataType().sql() + ".",
            "No procedure takes arguments of that type.",
            "See DESCRIBE PROCEDURE " + name() + ".");
      }
      if (isNamed(field)) {
        named.add(field.name());
      }
    }
    int positional = given.length() - named.size();
    PythonBridge.ask("check", "name", name(), "positional", positional, "named", named);
    return new Bound(given);
  }

  private static boolean isNamed(StructField field) {
    return field.metadata().contains(ProcedureParameter.BY_NAME_METADATA_KEY);
  }

  private final class Bound implements BoundProcedure {
    private final StructType given;

    private Bound(StructType given) {
      this.given = given;
    }

    @Override
    public String name() {
      return declaration.name;
    }

    @Override
    public String description() {
      return declaration.description;
    }

    @Override
    public boolean isDeterministic() {
      return false;
    }

    @Override
    public ProcedureParameter[] parameters() {
      StructField[] fields = given.fields();
      ProcedureParameter[] parameters = new ProcedureParameter[fields.length];
      for (int i = 0; i < fields.length; i++) {
        parameters[i] = ProcedureParameter.in(fields[i].name(), fields[i].dataType()).build();
      }
      return parameters;
    }

    @Override
    public Iterator<Scan> call(InternalRow row) {
      List<Object> positional = new ArrayList<>();
      Map<String, Object> named = new LinkedHashMap<>();
      StructField[] fields = given.fields();
      for (int i = 0; i < fields.length; i++) {
        Object value = Values.plain(row, i, fields[i].dataType());
        if (isNamed(fields[i])) {
          named.put(fields[i].name(), value);
        } else {
          positional.add(value);
        }
      }
      Object rows =
          PythonBridge.ask(
              "call", "name", name(), "positional", positional, "named", named,
              "settings", Statement.settings(), "permissions", Statement.permissions());
      return List.of(Values.scan(declaration.columns, (List<?>) rows)).iterator();
    }
  }
}
