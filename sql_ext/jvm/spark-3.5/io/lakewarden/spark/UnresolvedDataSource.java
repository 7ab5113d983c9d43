package io.lakewarden.spark;

import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.Seq;
import scala.collection.immutable.Map;

/** What `spark.read` names before it is looked for: Spark 3.5 does that before it makes a plan. */
interface UnresolvedDataSource {
  String format();

  Map<String, String> options();

  Seq<String> paths();
}
