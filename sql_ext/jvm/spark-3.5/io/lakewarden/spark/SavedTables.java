package io.lakewarden.spark;

import io.lakewarden.spark.LakeTable.Role;
import io.lakewarden.spark.TableRelations.Found;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.AppendData$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.CreateTable;

/**
 * Frames that are saved by the name of a table that is there: Spark 3.5 would drop it before it
 * replaces it, and creates it once more where rows are only added.
 */
final class SavedTables extends PlanRule {
  private static final String WRITER = "org.apache.spark.sql.DataFrameWriter";
  private static final String SAVE = "saveAsTable";

  SavedTables(SparkSession session) {
    super(session);
  }

  /** Before it drops a table, Spark looks it up alone. */
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof UnresolvedRelation relation
        && isReplaced()
        && found(CollectionConverters.asJava(relation.multipartIdentifier())) != null) {
      throw CreateStatements.noReplacement();
    }
    return super.apply(plan);
  }

  @Override
  protected LogicalPlan instead(LogicalPlan node) {
    if (!(node instanceof CreateTable create)
        || create.mode() != SaveMode.Append
        || create.query().isEmpty()) {
      return null;
    }
    CatalogTable asked = create.tableDesc();
    Found found =
        TableRelations.isOurs(asked.provider().get())
            ? found(CollectionConverters.asJava(asked.identifier().nameParts()))
            : null;
    if (found == null) {
      return null;
    }
    List<String> named = CollectionConverters.asJava(asked.partitionColumnNames());
    if (!named.isEmpty() && !named.equals(found.table().partitions())) {
      // Spark says what is wrong with them.
      return null;
    }
    return AppendData$.MODULE$.byName(
        (NamedRelation) found.relation(), create.query().get(), asked.storage().properties());
  }

  private Found found(List<String> name) {
    return new TableRelations(session).found(name, Map.of(), Role.WRITTEN);
  }

  private static boolean isReplaced() {
    return StackWalker.getInstance()
        .walk(
            calls ->
                calls.anyMatch(
                    call ->
                        call.getClassName().equals(WRITER) && call.getMethodName().equals(SAVE)));
  }
}
