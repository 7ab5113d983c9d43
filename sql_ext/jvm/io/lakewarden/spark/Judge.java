package io.lakewarden.spark;

import java.util.List;
import java.util.Locale;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedPersistentFunc;
import org.apache.spark.sql.catalyst.analysis.ResolvedPersistentView;
import org.apache.spark.sql.catalyst.analysis.ResolvedProcedure;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.expressions.CallMethodViaReflection;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PythonUDTF;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.command.DescribeQueryCommand;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Checks all of a plan when Spark has analysed it, and before anything of it runs: what a server's
 * owner has not allowed is refused, and so is a kind of node without a verdict.
 *
 * <p>Plans that our own procedures make are left alone; these ask by themselves.
 */
final class Judge extends AbstractFunction1<LogicalPlan, BoxedUnit> {
  private static final String FUNCTIONS = "lakewarden_";
  // Catalogs of Spark's own; any other one could be anything.
  private static final List<String> CATALOGS =
      List.of("V2SessionCatalog", "FakeSystemCatalog$", "FakeLocalCatalog$");

  private final SparkSession session;

  Judge(SparkSession session) {
    this.session = session;
  }

  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    if (Limits.hold()) {
      judgeAll(plan);
    }
    return BoxedUnit.UNIT;
  }

  private void judgeAll(LogicalPlan plan) {
    judge(plan);
    CollectionConverters.asJava(plan.children()).forEach(this::judgeAll);
    CollectionConverters.asJava(plan.expressions()).forEach(this::judge);
    if (executes(plan)) {
      for (Object inner : CollectionConverters.asJava(plan.innerChildren())) {
        // What is not resolved is planned, and judged, when its turn comes.
        if (inner instanceof LogicalPlan more && more.resolved()) {
          judgeAll(more);
        }
      }
    }
  }

  private static boolean executes(LogicalPlan plan) {
    return !(plan instanceof ExplainCommand || plan instanceof DescribeQueryCommand);
  }

  /** No others come to a server with limits: {@link ConnectRequests}. */
  private static boolean isOurs(PythonUDTF function) {
    return function.name().toLowerCase(Locale.ROOT).startsWith(FUNCTIONS);
  }

  private void judge(Expression expression) {
    if (expression instanceof SubqueryExpression subquery) {
      judgeAll(subquery.plan());
    }
    boolean isOurs = expression instanceof PythonUDTF function && isOurs(function);
    boolean isCode =
        expression instanceof UserDefinedExpression || expression instanceof CallMethodViaReflection;
    if (isCode && !isOurs) {
      throw Limits.refusal("The function " + expression.prettyName());
    }
    CollectionConverters.asJava(expression.children()).forEach(this::judge);
  }

  private void judge(LogicalPlan node) {
    if (node instanceof V2WriteCommand && LakeRelations.targetOf(node.productElement(0)) != null) {
      // Until Spark 4.0 the turn of a change comes later, and it asks for itself then.
      return;
    }
    Verdict verdict = Verdicts.of(node.getClass().getName());
    if (verdict == null || verdict == Verdict.REFUSED) {
      throw Limits.refusal(node.nodeName());
    }
    if (verdict == Verdict.CATALOG) {
      Limits.check(node.nodeName(), true, List.of());
    }
    if (verdict == Verdict.FILES) {
      new FileStatements(session).judge(node);
    }
    if (verdict == Verdict.DEPENDS && !isRelation(node) && !isName(node)) {
      new FileStatements(session).judgeSpecial(node);
    }
  }

  private boolean isRelation(LogicalPlan node) {
    if (node instanceof LogicalRelation relation) {
      judge(relation);
    } else if (node instanceof HiveTableRelation relation) {
      read(new Places(session).table(relation.tableMeta()));
    } else if (node instanceof DataSourceV2Relation relation) {
      judge(relation.table());
    } else if (node instanceof DataSourceV2ScanRelation scan) {
      judge(((DataSourceV2Relation) scan.productElement(0)).table());
    } else {
      return false;
    }
    return true;
  }

  private static void judge(Table table) {
    boolean isOurs = table instanceof PythonTable && table.name().equalsIgnoreCase(TableRelations.FORMAT);
    if (!isOurs && LakeRelations.unwrapped(table) == null) {
      throw Limits.refusal("The table " + table.name());
    }
  }

  private void judge(LogicalRelation relation) {
    if (!(relation.relation() instanceof HadoopFsRelation files)) {
      throw Limits.refusal("The relation " + relation.relation().getClass().getSimpleName());
    }
    Places places = new Places(session).options(files.options()).add(relation.catalogTable());
    for (Path root : CollectionConverters.asJava(files.location().rootPaths())) {
      places.add(root);
    }
    read(places);
  }

  private static void read(Places places) {
    Limits.check("The statement", false, places.found());
  }

  private static boolean isName(LogicalPlan node) {
    CatalogPlugin catalog;
    if (node instanceof ResolvedIdentifier name) {
      catalog = name.catalog();
    } else if (node instanceof ResolvedNamespace name) {
      catalog = name.catalog();
    } else if (node instanceof ResolvedTable name) {
      catalog = name.catalog();
    } else if (node instanceof ResolvedPersistentView name) {
      catalog = name.catalog();
    } else if (node instanceof ResolvedPersistentFunc name) {
      catalog = name.catalog();
    } else if (node instanceof ResolvedProcedure name) {
      catalog = name.catalog();
    } else {
      return false;
    }
    Class<?> kind = catalog.getClass();
    boolean isOurs = kind.getPackageName().equals(Judge.class.getPackageName());
    boolean isSparks =
        kind.getPackageName().startsWith("org.apache.spark.sql.")
            && CATALOGS.contains(kind.getSimpleName());
    if (!isOurs && !isSparks) {
      throw Limits.refusal("The catalog " + catalog.name());
    }
    return true;
  }
}
