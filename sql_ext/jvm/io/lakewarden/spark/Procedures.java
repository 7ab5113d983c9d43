package io.lakewarden.spark;

import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The catalog of our procedures; {@link Extensions} registers it. */
public final class Procedures implements ProcedureCatalog {
  static final String CATALOG = "lakewarden";
  static final String NAMESPACE = "system";
  static final String SETTING = "spark.sql.catalog." + CATALOG;

  private String name = CATALOG;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String[] defaultNamespace() {
    return new String[] {NAMESPACE};
  }

  /** The namespace does not matter: only the last part of a name ever did. */
  @Override
  public UnboundProcedure loadProcedure(Identifier identifier) {
    return new DeclaredProcedure(Declarations.named(identifier.name()));
  }

  @Override
  public Identifier[] listProcedures(String[] namespace) {
    return Declarations.names().stream()
        .map(name -> Identifier.of(new String[] {NAMESPACE}, name))
        .toArray(Identifier[]::new);
  }
}
