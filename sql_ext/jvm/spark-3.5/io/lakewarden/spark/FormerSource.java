package io.lakewarden.spark;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.errors.QueryCompilationErrors$;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The format of `spark.read` and `df.write`: Spark 3.5 has no data sources in Python. A frame is
 * saved the old way, which takes a table that is not there yet, and columns that are new.
 */
public final class FormerSource extends TableSource
    implements DataSourceRegister, CreatableRelationProvider {
  // Spark asks a reader's source for its partitions, and says those of a writer.
  private static final Transform[] OF_READER = new Transform[0];

  private LakeTable inferred;

  @Override
  public String shortName() {
    return TableRelations.FORMAT;
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap given) {
    Map<String, String> options = new HashMap<>(given.asCaseSensitiveMap());
    inferred = LakeTable.open(path(options), options, LakeTable.Role.READ);
    return inferred.schema();
  }

  @Override
  public Transform[] inferPartitioning(CaseInsensitiveStringMap unused) {
    return OF_READER;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitions, Map<String, String> given) {
    if (partitions != OF_READER) {
      return new Saved(schema);
    }
    if (inferred == null) {
      throw LakewardenException.of(
          "UNSUPPORTED_SCHEMA",
          "0A000",
          "A table can't be read with a schema of the reader's.",
          "It has columns of its own.",
          "Leave out schema(), and select columns.");
    }
    return inferred;
  }

  @Override
  public BaseRelation createRelation(
      SQLContext context,
      SaveMode mode,
      scala.collection.immutable.Map<String, String> given,
      Dataset<Row> rows) {
    if (mode != SaveMode.Append && mode != SaveMode.Overwrite) {
      throw LakewardenException.rethrow(
          QueryCompilationErrors$.MODULE$.writeWithSaveModeUnsupportedBySourceError(
              shortName(), mode.name()));
    }
    Map<String, String> options = new HashMap<>(CollectionConverters.asJava(asWritten(given)));
    long place = PlanRegistry.number();
    PlanRegistry.put(place, rows);
    try {
      PythonBridge.ask(
          "save_frame",
          "path", path(options),
          "options", Statement.withStorage(options),
          "permissions", Statement.permissions(),
          "place", place,
          "overwrites", mode == SaveMode.Overwrite);
    } finally {
      PlanRegistry.take(place);
    }
    return new Written(context, rows.schema());
  }

  /** Options as they were written: Spark hands them over in small letters. */
  @SuppressWarnings("unchecked")
  private static scala.collection.immutable.Map<String, String> asWritten(
      scala.collection.immutable.Map<String, String> given) {
    return given instanceof CaseInsensitiveMap
        ? ((CaseInsensitiveMap<String>) given).originalMap()
        : given;
  }

  private static String path(Map<String, String> options) {
    String path = options.remove("path");
    if (path == null) {
      throw LakewardenException.of(
          "NO_PATH",
          "42000",
          "The table's path is missing.",
          "The data source finds a table by its path, not by a name.",
          "Pass it to load() or save(); spark.table takes names.");
    }
    return path;
  }

  /** What a frame is saved to: Spark 3.5 goes the old way with a table that it can't write to. */
  private record Saved(StructType schema) implements Table {
    @Override
    public String name() {
      return TableRelations.FORMAT;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of();
    }
  }

  /** What Spark wants back, and looks for in its cache. */
  private static final class Written extends BaseRelation {
    private final SQLContext context;
    private final StructType schema;

    Written(SQLContext context, StructType schema) {
      this.context = context;
      this.schema = schema;
    }

    @Override
    public SQLContext sqlContext() {
      return context;
    }

    @Override
    public StructType schema() {
      return schema;
    }
  }
}
