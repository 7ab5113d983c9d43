package io.lakewarden.spark;

/** A variable of a session, of which Spark 3.5 has none. */
interface VariableReference {}
