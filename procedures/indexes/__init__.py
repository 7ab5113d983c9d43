"""Indexes: what a table has of them, and how they come and go."""

from lakewarden.procedures.indexes.build_index import BuildIndex
from lakewarden.procedures.indexes.create_index import CreateIndex
from lakewarden.procedures.indexes.drop_index import DropIndex
from lakewarden.procedures.indexes.refresh_index import RefreshIndex
from lakewarden.procedures.indexes.set_index import SetIndex
from lakewarden.procedures.indexes.show_indexes import ShowIndexes

__all__ = ["BuildIndex", "CreateIndex", "DropIndex", "RefreshIndex", "SetIndex", "ShowIndexes"]
