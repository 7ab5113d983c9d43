package io.lakewarden.spark;

import java.lang.reflect.Method;
import java.net.URI;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Entries of the session catalog. Releases of Spark add parts to them, at the end and with a
 * default, so that those we name are known by their places and all others are left as they are.
 */
final class CatalogEntries {
  private CatalogEntries() {}

  static CatalogTable entry(
      TableIdentifier name,
      CatalogTableType type,
      URI place,
      StructType schema,
      List<String> partitions,
      Map<String, String> properties,
      String provider,
      Option<String> comment) {
    Map<Integer, Object> ofStorage =
        Map.of(
            0, Option.apply(place),
            5, LakewardenException.asScala(TableRelations.ofStorage(properties)));
    Object storage =
        filled(singleton(CatalogStorageFormat.class, "empty"), "copy", ofStorage);
    Map<Integer, Object> parts =
        Map.of(
            0, name,
            1, type,
            2, storage,
            3, schema,
            4, Option.apply(provider),
            5, CollectionConverters.asScala(partitions).toSeq(),
            11, LakewardenException.asScala(properties),
            14, comment);
    return (CatalogTable) filled(singleton(CatalogTable.class, null), "apply", parts);
  }

  /** Give an entry other properties, and a comment where one of them is that. */
  static void changeProperties(
      SessionCatalog catalog, TableIdentifier name, Map<String, String> set, List<String> unset) {
    try {
      CatalogTable entry = catalog.getTableMetadata(name);
      Map<String, String> all = new HashMap<>(CollectionConverters.asJava(entry.properties()));
      unset.forEach(all::remove);
      all.putAll(set);
      all.remove("comment");
      boolean isCommented = set.containsKey("comment") || unset.contains("comment");
      Option<String> comment = isCommented ? Option.apply(set.get("comment")) : entry.comment();
      Map<Integer, Object> parts = Map.of(11, LakewardenException.asScala(all), 14, comment);
      catalog.alterTable((CatalogTable) filled(entry, "copy", parts));
    } catch (Exception failed) {
      throw LakewardenException.rethrow(failed);
    }
  }

  /** The one object of a Scala `object`, or what a method of it gives. */
  static Object singleton(Class<?> type, String method) {
    try {
      Object companion = Class.forName(type.getName() + "$").getField("MODULE$").get(null);
      return method == null ? companion : companion.getClass().getMethod(method).invoke(companion);
    } catch (ReflectiveOperationException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /** What a method of Scala's gives for some arguments, and the defaults of the others. */
  static Object filled(Object owner, String name, Map<Integer, Object> given) {
    try {
      for (Method method : owner.getClass().getMethods()) {
        if (!method.getName().equals(name) || !takes(method, given)) {
          continue;
        }
        Object[] arguments = new Object[method.getParameterCount()];
        for (int i = 0; i < arguments.length; i++) {
          arguments[i] =
              given.containsKey(i)
                  ? given.get(i)
                  : owner.getClass().getMethod(name + "$default$" + (i + 1)).invoke(owner);
        }
        return method.invoke(owner, arguments);
      }
    } catch (ReflectiveOperationException impossible) {
      throw new IllegalStateException(impossible);
    }
    throw new IllegalStateException(owner + " has no " + name);
  }

  /** Whether this is the overload that some arguments are for. */
  private static boolean takes(Method method, Map<Integer, Object> given) {
    Class<?>[] types = method.getParameterTypes();
    return given.entrySet().stream()
        .allMatch(
            one -> one.getKey() < types.length && types[one.getKey()].isInstance(one.getValue()));
  }
}
