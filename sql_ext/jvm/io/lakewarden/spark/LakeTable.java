package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A table at one moment, as Spark's analyser sees it.
 *
 * <p>It only stands for the table: {@link ScanSubstitution} puts a scan in its place before a plan
 * runs, and {@link WriteStatements} takes over what writes to it. What is read has Hudi's
 * own columns in front; for the target of a write they are metadata columns, which can be named but
 * do not count.
 */
public final class LakeTable
    implements SupportsRead, SupportsWrite, SupportsRowLevelOperations, SupportsMetadataColumns {
  static final String STORAGE_PREFIX = "lakewarden.storage.";
  /** In front of the names of columns that carry what identified a row before a change. */
  static final String ORIGINAL = "__original_";

  static final List<String> META_NAMES =
      List.of(
          "_hoodie_commit_time",
          "_hoodie_commit_seqno",
          "_hoodie_record_key",
          "_hoodie_partition_path",
          "_hoodie_file_name");
  static final int META_COLUMNS = META_NAMES.size();

  /** What a statement does with the table. */
  enum Role {
    READ,
    WRITTEN,
    MERGED
  }

  private static final String RECORD_KEY = "_hoodie_record_key";

  private final String path;
  private final Map<String, String> options;
  private final Role role;
  private final long moment;
  private final StructType metaColumns;
  private final StructType ownColumns;
  private final List<String> partitions;
  private final List<String> identity;
  private final Map<String, String> properties;

  private LakeTable(
      String path, Map<String, String> options, Role role, long moment, LakeTable other) {
    this.path = path;
    this.options = options;
    this.role = role;
    this.moment = moment;
    this.metaColumns = other.metaColumns;
    this.ownColumns = other.ownColumns;
    this.partitions = other.partitions;
    this.identity = other.identity;
    this.properties = other.properties;
  }

  private LakeTable(
      String path, Map<String, String> options, Role role, Map<?, ?> described) {
    this.path = path;
    this.options = options;
    this.role = role;
    this.moment = ((Number) described.get("moment")).longValue();
    this.metaColumns = columns(described.get("meta_columns"));
    this.ownColumns = columns(described.get("columns"));
    this.partitions = texts(described.get("partitions"));
    this.identity = texts(described.get("identity"));
    this.properties = new TreeMap<>();
    ((Map<?, ?>) described.get("properties"))
        .forEach((key, value) -> properties.put((String) key, (String) value));
  }

  /** Columns as SQL declares them; there may be none. */
  private static StructType columns(Object declared) {
    String text = (String) declared;
    return text.isEmpty() ? new StructType() : StructType.fromDDL(text);
  }

  /** The table at a path as it is now, or as the options say. */
  static LakeTable open(String path, Map<String, String> given, Role role) {
    Map<String, String> options = Statement.withStorage(given);
    Object described = 
        PythonBridge.ask(
            "describe_table",
            "path", path,
            "options", options,
            "permissions", Statement.permissions());
    return new LakeTable(path, options, role, (Map<?, ?>) described);
  }

  /** The same table at another moment, with the columns it was found with. */
  LakeTable at(long otherMoment) {
    return new LakeTable(path, options, role, otherMoment, this);
  }

  LakeTable inRole(Role other) {
    return new LakeTable(path, options, other, moment, this);
  }

  boolean isRead() {
    return role == Role.READ;
  }

  boolean isMerged() {
    return role == Role.MERGED;
  }

  String path() {
    return path;
  }

  Map<String, String> options() {
    return options;
  }

  long moment() {
    return moment;
  }

  List<String> partitions() {
    return partitions;
  }

  /** The names of the columns without Hudi's own. */
  List<String> ownColumns() {
    return List.of(ownColumns.fieldNames());
  }

  StructType ownSchema() {
    return ownColumns;
  }

  /** Whether rows have Hudi's own columns in front, as a query of a table has them. */
  boolean beginsWithMetaColumns(List<Attribute> output) {
    String[] names = metaColumns.fieldNames();
    if (names.length != META_COLUMNS || output.size() < META_COLUMNS) {
      return false;
    }
    for (int i = 0; i < META_COLUMNS; i++) {
      if (!output.get(i).name().equals(names[i])) {
        return false;
      }
    }
    return true;
  }

  /** Whether this is the same table, read as it is now rather than at a time of its past. */
  boolean isNow(String otherPath) {
    return path.equals(otherPath) && options.keySet().stream().allMatch(LakeTable::isOfStorage);
  }

  private static boolean isOfStorage(String option) {
    return option.startsWith(STORAGE_PREFIX);
  }

  @Override
  public String name() {
    // Spark 3.5 takes names in its errors apart.
    return "lakewarden" + (Classes.VARIABLES ? " `" : ".`") + path + "`";
  }

  @Override
  public StructType schema() {
    if (role != Role.READ) {
      return ownColumns;
    }
    List<StructField> fields = new ArrayList<>(List.of(metaColumns.fields()));
    fields.addAll(List.of(ownColumns.fields()));
    return new StructType(fields.toArray(StructField[]::new));
  }

  @Override
  public Transform[] partitioning() {
    return partitions.stream().map(Expressions::identity).toArray(Transform[]::new);
  }

  @Override
  public Map<String, String> properties() {
    return properties;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(
        TableCapability.BATCH_READ,
        TableCapability.BATCH_WRITE,
        TableCapability.OVERWRITE_BY_FILTER,
        TableCapability.OVERWRITE_DYNAMIC,
        TableCapability.TRUNCATE);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    List<MetadataColumn> columns = new ArrayList<>();
    if (role != Role.READ) {
      for (StructField meta : metaColumns.fields()) {
        columns.add(new MetaColumn(meta.name(), meta.dataType(), !meta.name().equals(RECORD_KEY)));
      }
      for (String name : identity) {
        boolean isMeta = List.of(metaColumns.fieldNames()).contains(name);
        StructType from = isMeta ? metaColumns : ownColumns;
        columns.add(new MetaColumn(ORIGINAL + name, from.apply(name).dataType(), true));
      }
    }
    return columns.toArray(MetadataColumn[]::new);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap unused) {
    return () -> this::schema;
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    throw new UnsupportedOperationException("This statement can't write to " + name());
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    NamedReference[] originals =
        identity.stream()
            .map(name -> FieldReference.column(ORIGINAL + name))
            .toArray(NamedReference[]::new);
    NamedReference[] key = {FieldReference.column(RECORD_KEY)};
    return () -> new RowChange(info.command(), key, originals);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LakeTable
        && path.equals(((LakeTable) other).path)
        && options.equals(((LakeTable) other).options)
        && role == ((LakeTable) other).role
        && moment == ((LakeTable) other).moment;
  }

  @Override
  public int hashCode() {
    return Objects.hash(path, options, role, moment);
  }

  private static List<String> texts(Object list) {
    List<String> found = new ArrayList<>();
    ((List<?>) list).forEach(text -> found.add((String) text));
    return List.copyOf(found);
  }

  private record MetaColumn(String name, DataType dataType, boolean isNullable)
      implements MetadataColumn {}
}
