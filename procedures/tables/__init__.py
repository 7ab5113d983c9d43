"""Tables: what has been said about a table, and what holds for it."""

from lakewarden.procedures.tables.table_settings import ShowConfig, ShowTableProperties

__all__ = ["ShowConfig", "ShowTableProperties"]
