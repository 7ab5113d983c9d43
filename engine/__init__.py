"""The table engine: knows no SQL and, outside `engine.spark`, no Spark."""
