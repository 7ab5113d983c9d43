"""Conditions on rows: SQL's boolean expressions, compiled to plain functions."""
