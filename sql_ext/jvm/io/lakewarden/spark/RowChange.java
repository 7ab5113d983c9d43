package io.lakewarden.spark;

import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Makes Spark turn DELETE, UPDATE and MERGE into rows that say what becomes of a record. */
final class RowChange implements SupportsDelta {
  private final Command command;
  private final NamedReference[] rowId;
  private final NamedReference[] originals;

  RowChange(Command command, NamedReference[] rowId, NamedReference[] originals) {
    this.command = command;
    this.rowId = rowId;
    this.originals = originals;
  }

  @Override
  public Command command() {
    return command;
  }

  @Override
  public NamedReference[] rowId() {
    return rowId;
  }

  /** What a row was known by goes through the plan untouched, whatever the row becomes. */
  @Override
  public NamedReference[] requiredMetadataAttributes() {
    return originals;
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    throw new UnsupportedOperationException("A scan takes the place of the table before this.");
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    throw new UnsupportedOperationException("A statement takes the place of the write before this.");
  }
}
