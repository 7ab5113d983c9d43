package io.lakewarden.spark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * What is thought of every kind of node that Spark's planner has, by name: not every release has
 * every one. A kind that is missing here is refused on a server with limits.
 */
public final class Verdicts {
  private static final String OURS = "io.lakewarden.spark.";
  private static final String SPARKS = "org.apache.spark.sql.";
  private static final Map<String, Verdict> ALL = new HashMap<>();

  static {
    // Operators of queries.
    put(
        Verdict.READS,
        """
        Aggregate AppendColumns AppendColumnsWithObject AsOfJoin AttachDistributedSequence BinBy
        CTERelationDef CTERelationRef CoGroup CollectMetrics DataFrameDropColumns Deduplicate
        DeserializeToObject Distinct DomainJoin Except Expand Filter Generate GlobalLimit Intersect
        Join LateralJoin LimitAll LocalLimit MapElements MapGroups MapPartitions MergeRows
        MultiResult NearestByJoin Offset OrderedJoin PipeOperator Pivot Project RebalancePartitions
        Repartition RepartitionByExpression ResolvedHint ReturnAnswer SQLFunctionNode Sample
        SerializeFromObject Sort Subquery SubqueryAlias Tail Transpose TypedFilter Union UnionLoop
        UnionLoopRef Unpivot UnresolvedHint View Window WindowGroupLimit WithCTE WithWindowDefinition
        Zip MetricViewPlaceholder ResolvedMetricView
        """);
    // What holds rows already, or makes them of nothing.
    put(
        Verdict.READS,
        """
        CommandResult DummyExpressionHolder EmptyRelation ExternalRDD InMemoryRelation LocalRelation
        LogicalQueryStage LogicalRDD NonGroupingAggregateReference OneRowRelation Range
        ResolvedInlineTable SQLTableFunction TemporaryViewRelation
        """);
    // Relations, and what statements name; judged by where it leads to.
    put(
        Verdict.DEPENDS,
        """
        DataSourceV2Relation DataSourceV2ScanRelation HiveTableRelation LogicalRelation
        ResolvedIdentifier ResolvedNamespace ResolvedPersistentFunc ResolvedPersistentView
        ResolvedProcedure ResolvedTable
        """);
    put(Verdict.READS, "ResolvedNonPersistentFunc ResolvedTempView CurrentNamespace");
    // Statements of scripts: what is in them is planned when its turn comes.
    put(
        Verdict.READS,
        """
        CaseStatement CloseCursor CompoundBody DeclareCursor ErrorCondition ExceptionHandler
        FetchCursor ForStatement IfElseStatement IterateStatement LeaveStatement LoopStatement
        OpenCursor RepeatStatement SearchedCaseStatement SimpleCaseStatement SingleStatement
        WhileStatement
        """);
    // Statements that show something, or set it for a session.
    put(
        Verdict.READS,
        """
        CacheTable CacheTableAsSelect Call ClearCacheCommand CreateVariable DescribeColumn
        DescribeColumnCommand DescribeDatabaseCommand DescribeFunction DescribeFunctionCommand
        DescribeNamespace DescribeProcedureCommand DescribeQueryCommand DescribeRelation
        DescribeRelationJsonCommand DescribeTableCommand DescribeTablePartition DropTempViewCommand
        DropVariable ExplainCommand ListArchivesCommand ListFilesCommand ListJarsCommand NoopCommand
        RefreshFunction RefreshFunctionCommand RefreshResource RefreshTable RefreshTableCommand
        ResetCommand SetCatalogAndNamespace SetCatalogCommand SetNamespaceCommand SetPathCommand
        SetVariable ShowCatalogsCommand ShowCollationsCommand ShowColumns ShowColumnsCommand
        ShowCreateTable ShowCreateTableAsSerdeCommand ShowCreateTableCommand
        ShowCurrentNamespaceCommand ShowFunctions ShowFunctionsCommand ShowNamespacesCommand
        ShowPartitions ShowPartitionsCommand ShowPartitionsJsonCommand ShowProceduresCommand
        ShowTablePartition ShowTableProperties ShowTablePropertiesCommand ShowTables
        ShowTablesCommand ShowTablesExtended ShowTablesJsonCommand ShowViews ShowViewsCommand
        UncacheTable ShowNamespaces ShowFunctionsV2 ShowTableExtended
        """);
    put(
        Verdict.DEPENDS,
        """
        CreateSQLFunctionCommand CreateTempViewUsing CreateViewCommand DropFunctionCommand SetCommand
        """);
    put(
        Verdict.CATALOG,
        """
        AlterDatabasePropertiesCommand AlterTableAddColumnsCommand AlterTableChangeColumnCommand
        AlterTableChangeColumnCommentsCommand AlterTableSetPropertiesCommand
        AlterTableUnsetPropertiesCommand AlterViewAsCommand AlterViewSchemaBindingCommand
        CommentOnNamespace CommentOnTable CreateMetricViewCommand DropView
        SetNamespaceCollationCommand SetNamespaceProperties SetTableProperties SetViewProperties
        UnsetNamespacePropertiesCommand UnsetTableProperties UnsetViewProperties
        """);
    put(
        Verdict.FILES,
        """
        AlterTableDropPartitionCommand AlterTableRenamePartitionCommand AnalyzeColumnCommand
        AnalyzePartitionCommand AnalyzeTableCommand CreateDataSourceTableAsSelectCommand
        CreateDataSourceTableCommand CreateTableLikeCommand InsertIntoDataSourceDirCommand
        InsertIntoHadoopFsRelationCommand RepairTableCommand TruncateTableCommand WriteFiles
        """);
    put(
        Verdict.DEPENDS,
        """
        AlterTableRenameCommand AppendData CreateDatabaseCommand CreateNamespace
        DropDatabaseCommand DropNamespace DropTable DropTableCommand OverwriteByExpression
        OverwritePartitionsDynamic RenameTable
        """);
    // Code of a client's own: it could touch anything.
    put(
        Verdict.REFUSED,
        """
        AddArchivesCommand AddFilesCommand AddJarsCommand ArrowEvalPython ArrowEvalPythonUDTF
        BatchEvalPython BatchEvalPythonUDTF CreateFunction CreateFunctionCommand
        CreateUserDefinedFunction ExternalCommandExecutor FlatMapCoGroupsInArrow
        FlatMapCoGroupsInPandas FlatMapGroupsInArrow FlatMapGroupsInPandas
        FlatMapGroupsInPandasWithState FlatMapGroupsInR FlatMapGroupsInRWithArrow
        FlatMapGroupsWithState MapInArrow MapInPandas MapPartitionsExternalUDF MapPartitionsInR
        MapPartitionsInRWithArrow PythonMapInArrow ScriptTransformation TransformWithState
        TransformWithStateInPandas TransformWithStateInPySpark PythonWorkerLogs
        """);
    // Places that a later statement would change without naming them.
    put(
        Verdict.REFUSED,
        """
        AddPartitions AlterDatabaseSetLocationCommand AlterTableAddPartitionCommand
        AlterTableSerDePropertiesCommand AlterTableSetLocationCommand SetNamespaceLocation
        SetTableLocation SetTableSerDeProperties
        """);
    // Files of sources that are unknown here, of Hive's own formats, or moved from elsewhere.
    put(
        Verdict.REFUSED,
        """
        AnalyzeTablesCommand CreateHiveTableAsSelectCommand CreateTableCommand
        InsertIntoDataSourceCommand InsertIntoHiveDirCommand InsertIntoHiveTable LoadData
        LoadDataCommand SaveAsV1TableCommand SaveIntoDataSourceCommand ScanBuilderHolder
        V2ChangelogReference V2TableReference WriteToDataSourceV2
        """);
    put(
        Verdict.REFUSED,
        """
        AutoCdcInto CreateFlowCommand CreateMaterializedViewAsSelect CreateStreamingTable
        CreateStreamingTableAsSelect CreateStreamingTableAutoCdc DeduplicateWithinWatermark
        EventTimeWatermark MemoryPlan NamedStreamingRelation OffsetHolder SequentialStreamingUnion
        StreamingDataSourceV2Relation StreamingDataSourceV2ScanRelation StreamingExecutionRelation
        StreamingExplainCommand StreamingRelation StreamingRelationV2 UpdateEventTimeWatermarkColumn
        WriteToContinuousDataSource WriteToMicroBatchDataSource WriteToMicroBatchDataSourceV1
        WriteToStream WriteToStreamStatement
        """);
    // Spark has put others into their places when a plan is analysed, or can't carry them out.
    put(
        Verdict.REFUSED,
        """
        AddCheckConstraint AddColumns AddConstraint AlterColumns AlterTableClusterBy
        AlterTableCollation AlterViewAs AlterViewSchemaBinding AnalyzeColumn AnalyzeTable
        AnalyzeTables CreateIndex CreateMetricView CreateTable CreateTableAsSelect CreateTableLike
        CreateView DeleteFromTable DeleteFromTableWithFilters DropColumns DropConstraint DropFunction
        DropIndex DropPartitions InsertIntoDir InsertIntoStatement InsertOnlyMerge MergeIntoTable
        RecoverPartitions RenameColumn RenamePartitions RepairTable ReplaceColumns ReplaceData
        ReplaceTable ReplaceTableAsSelect TruncatePartition TruncateTable UpdateTable WriteDelta
        """);
    put(
        Verdict.REFUSED,
        """
        ExecuteImmediateQuery GeneralParameterizedQuery NameParameterizedQuery PlanWithUnresolvedIdentifier
        PosParameterizedQuery RelationChanges RelationTimeTravel UnresolvedBinBy
        UnresolvedCatalogRelation UnresolvedCteRelationRef UnresolvedDataSource
        UnresolvedDeduplicate UnresolvedEventTimeWatermark UnresolvedExecuteImmediate
        UnresolvedFunctionName UnresolvedHaving UnresolvedIdentifier UnresolvedInlineTable
        UnresolvedInsert UnresolvedInsertTarget UnresolvedNamespace UnresolvedProcedure
        UnresolvedQualify UnresolvedRelation UnresolvedSubqueryColumnAliases UnresolvedTVFAliases
        UnresolvedTable UnresolvedTableOrView UnresolvedTableValuedFunction UnresolvedTranspose
        UnresolvedView UnresolvedWith
        """);
  }

  private Verdicts() {}

  /** The verdict on a kind of node, by its class; null if there is none. */
  public static String named(String className) {
    Verdict verdict = of(className);
    return verdict == null ? null : verdict.name();
  }

  static Verdict of(String className) {
    if (className.startsWith(OURS)) {
      // Statements of ours ask for themselves.
      return Verdict.READS;
    }
    String name = className.substring(className.lastIndexOf('.') + 1);
    return className.startsWith(SPARKS) ? ALL.get(name.replace("$", "")) : null;
  }

  private static void put(Verdict verdict, String names) {
    Arrays.stream(names.strip().split("\\s+")).forEach(name -> ALL.put(name, verdict));
  }
}
