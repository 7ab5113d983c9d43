package io.lakewarden.spark;

import java.util.Map;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkThrowable;

/**
 * An error for clients of a Thrift server. Spark's server sends them whatever a stack trace prints,
 * and lets only an exception of its own pass as it is; this one prints its message.
 */
final class ThriftError extends HiveSQLException implements SparkThrowable {
  private static final long serialVersionUID = 1;
  private final transient SparkThrowable error;

  private ThriftError(Throwable thrown, SparkThrowable error) {
    super(thrown.getMessage(), error.getSqlState());
    this.error = error;
  }

  static <E extends Throwable & SparkThrowable> ThriftError of(E error) {
    return new ThriftError(error, error);
  }

  public String getCondition() {
    return error.getErrorClass();
  }

  // Spark 3.5 knows the condition by this name only.
  @Override
  public String getErrorClass() {
    return error.getErrorClass();
  }

  @Override
  public String getSqlState() {
    return error.getSqlState();
  }

  @Override
  public Map<String, String> getMessageParameters() {
    return error.getMessageParameters();
  }

  @Override
  public QueryContext[] getQueryContext() {
    return error.getQueryContext();
  }

  @Override
  public String toString() {
    return getMessage();
  }

  /** The place of the throw helps neither a client nor a log: the error is in the statement. */
  @Override
  public synchronized Throwable fillInStackTrace() {
    return this;
  }

  /** Spark gives an error the stack of the thread that asks for it again. */
  @Override
  public void setStackTrace(StackTraceElement[] ignored) {}
}
