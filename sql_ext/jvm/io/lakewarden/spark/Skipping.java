package io.lakewarden.spark;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.DateAdd;
import org.apache.spark.sql.catalyst.expressions.DateFormatClass;
import org.apache.spark.sql.catalyst.expressions.DateSub;
import org.apache.spark.sql.catalyst.expressions.DayOfMonth;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FromUnixTime;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Hour;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Length;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Lower;
import org.apache.spark.sql.catalyst.expressions.Month;
import org.apache.spark.sql.catalyst.expressions.StartsWith;
import org.apache.spark.sql.catalyst.expressions.StringTrim;
import org.apache.spark.sql.catalyst.expressions.StringTrimLeft;
import org.apache.spark.sql.catalyst.expressions.StringTrimRight;
import org.apache.spark.sql.catalyst.expressions.Substring;
import org.apache.spark.sql.catalyst.expressions.Upper;
import org.apache.spark.sql.catalyst.expressions.Year;
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
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Conditions by which the engine can leave out files: a column, or a function of one that an index
 * may be of, compared with a constant.
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

  /** That a column has a value, as a partition does; null if that can't be said. */
  static List<Object> equal(Attribute column, Object value) {
    // Nothing is skipped by numbers that have no exact equals, but they name partitions.
    boolean isFloating = value instanceof Float || value instanceof Double;
    return said(column, "=", isFloating ? value : plain(value, column.dataType()));
  }

  private static List<Object> condition(Expression filter) {
    if (filter instanceof In in) {
      return among(in.value(), literals(in));
    }
    if (filter instanceof InSet in) {
      return among(in.child(), new ArrayList<>(CollectionConverters.asJava(in.hset())));
    }
    if (filter instanceof IsNull one && one.child() instanceof Attribute column) {
      return said(column, "is null", true);
    }
    if (filter instanceof StartsWith one && one.right() instanceof Literal value) {
      return said(one.left(), "starts with", plain(value.value(), one.left().dataType()));
    }
    if (!(filter instanceof BinaryComparison comparison) || operator(filter) == null) {
      return null;
    }
    if (comparison.right() instanceof Literal value) {
      DataType type = comparison.left().dataType();
      return said(comparison.left(), operator(filter), plain(value.value(), type));
    }
    if (comparison.left() instanceof Literal value) {
      DataType type = comparison.right().dataType();
      return said(comparison.right(), mirrored(operator(filter)), plain(value.value(), type));
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

  private static List<Object> among(Expression column, List<Object> values) {
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

  private static List<Object> said(Expression side, String operator, Object value) {
    Object subject = side instanceof Attribute column ? column.name() : term(side);
    return value == null || subject == null
        ? null
        : List.of(subject, operator, side.dataType().typeName(), value);
  }

  /**
   * A function of a column, as expression indexes have it: its name, the column, the zone in which
   * it sees moments, and its options by name; null for any other expression.
   */
  private static List<Object> term(Expression one) {
    if (one instanceof Lower lower) {
      return term("lower", lower.child(), "");
    }
    if (one instanceof Upper upper) {
      return term("upper", upper.child(), "");
    }
    if (one instanceof Length length) {
      return term("length", length.child(), "");
    }
    if (one instanceof StringTrim trim) {
      return trimmed("trim", trim.srcStr(), trim.trimStr());
    }
    if (one instanceof StringTrimLeft trim) {
      return trimmed("ltrim", trim.srcStr(), trim.trimStr());
    }
    if (one instanceof StringTrimRight trim) {
      return trimmed("rtrim", trim.srcStr(), trim.trimStr());
    }
    if (one instanceof Substring part) {
      return term("substring", part.str(), "", "pos", part.pos(), "len", part.len());
    }
    if (one instanceof FromUnixTime text) {
      return term("from_unixtime", text.sec(), zone(text.timeZoneId()), "format", text.format());
    }
    if (one instanceof DateFormatClass text) {
      return term("date_format", text.left(), zone(text.timeZoneId()), "format", text.right());
    }
    if (one instanceof Year year) {
      return term("year", year.child(), "");
    }
    if (one instanceof Month month) {
      return term("month", month.child(), "");
    }
    if (one instanceof DayOfMonth day) {
      return term("day", day.child(), "");
    }
    if (one instanceof Hour hour) {
      return term("hour", hour.child(), zone(hour.timeZoneId()));
    }
    if (one instanceof DateAdd sum) {
      return term("date_add", sum.startDate(), "", "days", sum.days());
    }
    if (one instanceof DateSub difference) {
      return term("date_sub", difference.startDate(), "", "days", difference.days());
    }
    if (one instanceof Cast cast && cast.dataType() instanceof DateType) {
      return isMoment(cast.child()) ? term("to_date", cast.child(), zone(cast.timeZoneId())) : null;
    }
    return null;
  }

  private static List<Object> trimmed(String name, Expression child, Option<Expression> what) {
    return what.isEmpty() ? term(name, child, "") : term(name, child, "", "trimString", what.get());
  }

  /** A term of a column, which may be widened, or seen as a date, on the way. */
  private static List<Object> term(String name, Expression child, String zone, Object... options) {
    if (child instanceof Cast cast && cast.dataType() instanceof DateType && isMoment(cast.child())) {
      return term(name, cast.child(), zone(cast.timeZoneId()), options);
    }
    if (child instanceof Cast cast && isWidened(cast)) {
      return term(name, cast.child(), zone, options);
    }
    if (!(child instanceof Attribute column)) {
      return null;
    }
    List<Object> term = new ArrayList<>(List.of(name, column.name(), zone));
    for (Object option : options) {
      Object text = option instanceof Literal literal ? literal.value() : option;
      if (text == null || text instanceof Expression) {
        return null;
      }
      term.add(text.toString());
    }
    return term;
  }

  private static boolean isMoment(Expression child) {
    return child.dataType() instanceof TimestampType || child.dataType() instanceof TimestampNTZType;
  }

  private static boolean isWidened(Cast cast) {
    DataType from = cast.child().dataType();
    return cast.dataType() instanceof LongType
        && (from instanceof ByteType || from instanceof ShortType || from instanceof IntegerType);
  }

  private static String zone(Option<String> id) {
    return id.isEmpty() ? "UTC" : id.get();
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
