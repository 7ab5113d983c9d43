package io.lakewarden.spark;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Conditions by which the engine can leave out files: a column compared with a constant.
 *
 * <p>Only types for which Spark and Arrow agree on what is less are named. They do not for floating
 * point numbers (is NaN larger than all?), nor for texts in another than binary order.
 */
final class Skipping {
  private static final int VALUES_MAX = 1000;

  private Skipping() {}

  /** The filters that are a column, operator, type and value; the others are skipped. */
  static List<Object> conditions(List<Expression> filters) {
    List<Object> conditions = new ArrayList<>();
    for (Expression filter : filters) {
      List<Object> condition = condition(filter);
      if (condition != null) {
        conditions.add(condition);
      }
    }
    return conditions;
  }

  /** That a column has a value; null if that can't be said. */
  static List<Object> equal(Attribute column, Object value) {
    return said(column, "=", plain(value, column.dataType()));
  }

  private static List<Object> condition(Expression filter) {
    if (filter instanceof In in && in.value() instanceof Attribute column) {
      return among(column, literals(in));
    }
    if (filter instanceof InSet in && in.child() instanceof Attribute column) {
      return among(column, new ArrayList<>(CollectionConverters.asJava(in.hset())));
    }
    if (!(filter instanceof BinaryComparison comparison) || operator(filter) == null) {
      return null;
    }
    if (comparison.left() instanceof Attribute column && comparison.right() instanceof Literal value) {
      return said(column, operator(filter), plain(value.value(), column.dataType()));
    }
    if (comparison.right() instanceof Attribute column && comparison.left() instanceof Literal value) {
      return said(column, mirrored(operator(filter)), plain(value.value(), column.dataType()));
    }
    return null;
  }

  private static List<Object> literals(In in) {
    List<Object> values = new ArrayList<>();
    for (Expression one : CollectionConverters.asJava(in.list())) {
      if (!(one instanceof Literal literal)) {
        return null;
      }
      values.add(literal.value());
    }
    return values;
  }

  private static List<Object> among(Attribute column, List<Object> values) {
    if (values == null || values.size() > VALUES_MAX) {
      return null;
    }
    List<Object> plain = new ArrayList<>();
    for (Object value : values) {
      Object one = plain(value, column.dataType());
      if (one == null) {
        return null;
      }
      plain.add(one);
    }
    return said(column, "in", plain);
  }

  private static List<Object> said(Attribute column, String operator, Object value) {
    return value == null
        ? null
        : List.of(column.name(), operator, column.dataType().typeName(), value);
  }

  private static String operator(Expression filter) {
    if (filter instanceof EqualTo) {
      return "=";
    }
    if (filter instanceof LessThan) {
      return "<";
    }
    if (filter instanceof LessThanOrEqual) {
      return "<=";
    }
    if (filter instanceof GreaterThan) {
      return ">";
    }
    return filter instanceof GreaterThanOrEqual ? ">=" : null;
  }

  private static String mirrored(String operator) {
    return operator.startsWith("<")
        ? operator.replace('<', '>')
        : operator.replace('>', '<');
  }

  private static Object plain(Object value, DataType type) {
    if (value == null) {
      return null;
    }
    if (type.equals(DataTypes.StringType)) {
      return value.toString();
    }
    if (type instanceof DecimalType) {
      BigDecimal number = ((Decimal) value).toJavaBigDecimal();
      return number.toPlainString();
    }
    boolean isExact =
        type instanceof BooleanType
            || type instanceof ByteType
            || type instanceof ShortType
            || type instanceof IntegerType
            || type instanceof LongType
            || type instanceof DateType
            || type instanceof TimestampType
            || type instanceof TimestampNTZType;
    return isExact ? value : null;
  }
}
