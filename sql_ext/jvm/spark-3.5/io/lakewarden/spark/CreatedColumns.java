package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The columns that CREATE TABLE declares. */
final class CreatedColumns {
  private static final List<String> SPECIAL =
      List.of("CURRENT_DEFAULT", "GENERATION_EXPRESSION", "IDENTITY_COLUMN");

  private CreatedColumns() {}

  static StructType of(CreateTable create) {
    List<StructField> fields = new ArrayList<>();
    for (StructField column : create.tableSchema().fields()) {
      fields.add(CreateStatements.kept(column, SPECIAL.stream().noneMatch(column.metadata()::contains)));
    }
    return new StructType(fields.toArray(StructField[]::new));
  }
}
