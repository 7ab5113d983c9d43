package io.lakewarden.spark;

import java.util.Map;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkThrowable;

/**
 * An error as clients of a Thrift server are told it. Spark's server sends them whatever a stack
 * trace prints, and lets only an exception of its own pass as it is; this one prints its message.
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

  @Override
  public String getCondition() {
    return error.getCondition();
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

  /** Where it was thrown is of no use to a client, nor to a log: whoever wrote the statement erred. */
  @Override
  public synchronized Throwable fillInStackTrace() {
    return this;
  }

  /** Spark gives an error the stack of whoever asks for it again. */
  @Override
  public void setStackTrace(StackTraceElement[] ignored) {}
}
