package io.lakewarden.spark;

/** A function written in SQL, of which Spark 3.5 has none. */
interface CreateSQLFunctionCommand {
  boolean isTemp();
}
