"""Tables: what has been said about a table, and what holds for it."""

from lakewarden.procedures.tables.show_config import ShowConfig
from lakewarden.procedures.tables.show_table_properties import ShowTableProperties

__all__ = ["ShowConfig", "ShowTableProperties"]
