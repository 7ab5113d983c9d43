"""Lakewarden: table services for Apache Hudi tables."""
