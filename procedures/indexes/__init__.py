"""Indexes: what a table has of them, and how they come and go."""

from lakewarden.procedures.indexes.indexes import (
    BuildIndex,
    CreateIndex,
    DropIndex,
    RefreshIndex,
    SetIndex,
    ShowIndexes,
)

__all__ = ["BuildIndex", "CreateIndex", "DropIndex", "RefreshIndex", "SetIndex", "ShowIndexes"]
