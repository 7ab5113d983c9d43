package io.lakewarden.spark;

import java.lang.reflect.Field;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;

/** Joins a session that was made without our extensions, and all that will be made of it. */
public final class Installation {
  private Installation() {}

  public static synchronized void into(SparkSession session) throws ReflectiveOperationException {
    SessionState state = session.sessionState();
    if (state.sqlParser() instanceof RewritingParser) {
      return;
    }
    // For newSession(), which hands the extensions on.
    new Extensions().apply(session.extensions());
    session.conf().set(Procedures.SETTING, Procedures.class.getName());
    TableRules.into(session);
    // This session has its parser already, for good as Spark sees it.
    Field parser = SessionState.class.getDeclaredField("sqlParser");
    parser.setAccessible(true);
    parser.set(state, Parsers.around(session, state.sqlParser()));
  }
}
