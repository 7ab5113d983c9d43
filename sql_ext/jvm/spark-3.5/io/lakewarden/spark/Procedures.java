package io.lakewarden.spark;

import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The name of our procedures' catalog, which Spark 3.5 does not ask for any. */
public final class Procedures implements CatalogPlugin {
  static final String CATALOG = "lakewarden";
  static final String NAMESPACE = "system";
  static final String SETTING = "spark.sql.catalog." + CATALOG;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {}

  @Override
  public String name() {
    return CATALOG;
  }

  @Override
  public String[] defaultNamespace() {
    return new String[] {NAMESPACE};
  }
}
