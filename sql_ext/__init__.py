"""SQL: statements, calls and table functions in a Spark session, for every client of it."""
