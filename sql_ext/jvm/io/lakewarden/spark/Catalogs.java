package io.lakewarden.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.internal.SQLConf;

/**
 * A session's catalogs. They are asked by reflection: Spark's CatalogManager is a class in 4.1 and
 * an interface in 4.3, and code compiled for one fails on the other.
 */
final class Catalogs {
  private final SparkSession session;

  Catalogs(SparkSession session) {
    this.session = session;
  }

  /** Whether a name's first part is a registered catalog. */
  static boolean isCatalog(String name) {
    return name.equals("spark_catalog") || SQLConf.get().contains("spark.sql.catalog." + name);
  }

  /** The catalog in which Spark looks for a name of several parts. */
  CatalogPlugin owner(String firstPart) {
    return isCatalog(firstPart) ? (CatalogPlugin) ask("catalog", firstPart) : current();
  }

  CatalogPlugin current() {
    return (CatalogPlugin) ask("currentCatalog");
  }

  String[] currentNamespace() {
    return (String[]) ask("currentNamespace");
  }

  private Object ask(String method, Object... arguments) {
    Object manager =
        ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalogManager();
    Class<?>[] types = arguments.length == 0 ? new Class<?>[0] : new Class<?>[] {String.class};
    try {
      Method found = manager.getClass().getMethod(method, types);
      found.setAccessible(true);
      return found.invoke(manager, arguments);
    } catch (InvocationTargetException failed) {
      throw LakewardenException.rethrow(failed.getCause());
    } catch (ReflectiveOperationException impossible) {
      throw new IllegalStateException(impossible);
    }
  }
}
