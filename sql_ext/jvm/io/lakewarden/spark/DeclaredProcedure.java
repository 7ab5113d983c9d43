package io.lakewarden.spark;

import java.util.Iterator;
import java.util.List;
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
    ProcedureCalls.check(name(), given);
    return new Bound(given);
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
      List<?> rows = ProcedureCalls.rows(name(), given, row);
      return List.of(Values.scan(declaration.columns, rows)).iterator();
    }
  }
}
