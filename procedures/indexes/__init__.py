"""Indexes: what a table has of them, and how they come and go."""

from lakewarden.procedures.indexes.show_indexes import ShowIndexes

__all__ = ["ShowIndexes"]
