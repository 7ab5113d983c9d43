"""Tables of the format `lakewarden` for Spark's planner: what Python answers it."""
