"""Savepoints: moments that are kept, and ways back."""

from lakewarden.procedures.savepoints.create_savepoint import CreateSavepoint
from lakewarden.procedures.savepoints.delete_marker import DeleteMarker
from lakewarden.procedures.savepoints.delete_savepoint import DeleteSavepoint
from lakewarden.procedures.savepoints.restore_to_instant import RestoreToInstant
from lakewarden.procedures.savepoints.rollback_to_instant import RollbackToInstant
from lakewarden.procedures.savepoints.rollback_to_savepoint import RollbackToSavepoint
from lakewarden.procedures.savepoints.show_savepoints import ShowSavepoints

__all__ = [
    "CreateSavepoint",
    "DeleteMarker",
    "DeleteSavepoint",
    "RestoreToInstant",
    "RollbackToInstant",
    "RollbackToSavepoint",
    "ShowSavepoints",
]
