package io.lakewarden.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.ColumnDefinition;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** The columns that CREATE TABLE declares. */
final class CreatedColumns {
  private CreatedColumns() {}

  static StructType of(CreateTable create) {
    List<StructField> fields = new ArrayList<>();
    for (ColumnDefinition column : CollectionConverters.asJava(create.columns())) {
      boolean isPlain =
          column.defaultValue().isEmpty()
              && column.generationExpression().isEmpty()
              && column.identityColumnSpec().isEmpty();
      fields.add(
          CreateStatements.kept(
              new StructField(
                  column.name(), column.dataType(), column.nullable(), column.metadata()),
              isPlain));
    }
    return new StructType(fields.toArray(StructField[]::new));
  }
}
