package io.lakewarden.spark;

import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.python.EvaluatePython;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** Spark's values on their way to Python, and rows on their way back. */
final class Values {
  private static final long MICROS = 1_000_000L;

  private Values() {}

  /** Whether an argument can be of a type; its value would be taken for something else, or fail. */
  static boolean canBe(DataType type) {
    if (type instanceof ArrayType) {
      return canBe(((ArrayType) type).elementType());
    }
    if (type instanceof MapType) {
      return canBe(((MapType) type).keyType()) && canBe(((MapType) type).valueType());
    }
    return type instanceof NullType
        || type instanceof StringType
        || type instanceof BooleanType
        || type instanceof NumericType
        || type instanceof BinaryType
        || type instanceof DateType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType;
  }

  /** A value as pickle knows it; dates and times are texts. */
  static Object plain(SpecializedGetters row, int at, DataType type) {
    if (type instanceof NullType || row.isNullAt(at)) {
      return null;
    }
    return plain(row.get(at, type), type);
  }

  private static Object plain(Object value, DataType type) {
    if (value instanceof UTF8String) {
      return value.toString();
    }
    if (value instanceof Decimal) {
      java.math.BigDecimal number = ((Decimal) value).toJavaBigDecimal();
      return number.scale() == 0 ? number.toBigIntegerExact() : (Object) number.doubleValue();
    }
    if (type instanceof DateType) {
      return LocalDate.ofEpochDay((Integer) value).toString();
    }
    if (type instanceof TimestampType) {
      return instant((Long) value).toString();
    }
    if (type instanceof TimestampNTZType) {
      return LocalDateTime.ofInstant(instant((Long) value), ZoneOffset.UTC).toString();
    }
    if (value instanceof ArrayData) {
      return list((ArrayData) value, ((ArrayType) type).elementType());
    }
    if (value instanceof MapData) {
      return map((MapData) value, (MapType) type);
    }
    return value;
  }

  private static Instant instant(long micros) {
    return Instant.ofEpochSecond(
        Math.floorDiv(micros, MICROS), Math.floorMod(micros, MICROS) * 1_000);
  }

  private static List<Object> list(ArrayData values, DataType type) {
    List<Object> plain = new ArrayList<>();
    for (int i = 0; i < values.numElements(); i++) {
      plain.add(plain(values, i, type));
    }
    return plain;
  }

  private static Map<Object, Object> map(MapData pairs, MapType type) {
    Map<Object, Object> plain = new LinkedHashMap<>();
    for (int i = 0; i < pairs.numElements(); i++) {
      plain.put(
          plain(pairs.keyArray(), i, type.keyType()), plain(pairs.valueArray(), i, type.valueType()));
    }
    return plain;
  }

  /** Rows as Python gives them. */
  static List<InternalRow> rows(StructType schema, List<?> rows) {
    scala.Function1<Object, Object> convert = EvaluatePython.makeFromJava(schema);
    return rows.stream().map(row -> (InternalRow) convert.apply(row)).toList();
  }

  /** Rows that are there already: they may be read any number of times, and nothing runs again. */
  static Scan scan(StructType schema, List<?> rows) {
    InternalRow[] converted = rows(schema, rows).toArray(InternalRow[]::new);
    return new LocalScan() {
      @Override
      public InternalRow[] rows() {
        return converted;
      }

      @Override
      public StructType readSchema() {
        return schema;
      }
    };
  }
}
