"""Procedures: one declaration each, for SQL, Python, the command line, help and reference page."""
