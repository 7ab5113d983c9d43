package io.lakewarden.spark;

import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.classic.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Refuses what leads out of a server's limits before Spark looks at it: it lists and opens files,
 * or connects to databases, to learn the columns.
 */
final class SparkSources extends PlanRule {
  SparkSources(SparkSession session) {
    super(session);
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!Limits.hold()) {
      return plan;
    }
    Places.checkSettings();
    return super.apply(plan);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (node instanceof WriteToStreamStatement || node.isStreaming()) {
      throw Limits.refusal("A streaming query");
    }
    if (node instanceof UnresolvedDataSource source) {
      Places.checkProviderOrOurs(source.format());
      Places places = new Places(session).options(source.options());
      CollectionConverters.asJava(source.paths()).forEach(places::path);
      read(places);
    }
    if (node instanceof UnresolvedRelation relation && relation.multipartIdentifier().size() == 2) {
      Places places = new Places(session).options(relation.options().asCaseSensitiveMap());
      String name = relation.multipartIdentifier().last();
      // The name of a table has no such signs, but a path that Spark opens has some.
      if (name.contains("/") || name.contains(":")) {
        places.path(name);
      }
      read(places);
    }
    return null;
  }

  private static void read(Places places) {
    if (!places.found().isEmpty()) {
      Limits.check("The statement", false, places.found());
    }
  }
}
