"""Savepoints: moments that are kept, and ways back."""

from lakewarden.procedures.savepoints.restores import (
    RestoreToInstant,
    RollbackToInstant,
    RollbackToSavepoint,
)
from lakewarden.procedures.savepoints.savepoints import (
    CreateSavepoint,
    DeleteMarker,
    DeleteSavepoint,
    ShowSavepoints,
)

__all__ = [
    "CreateSavepoint",
    "DeleteMarker",
    "DeleteSavepoint",
    "RestoreToInstant",
    "RollbackToInstant",
    "RollbackToSavepoint",
    "ShowSavepoints",
]
