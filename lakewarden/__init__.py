"""Lakewarden: table services for Apache Hudi tables."""

from lakewarden.engine.kernel.errors import (
    Conflict,
    CorruptTable,
    Defect,
    InvalidRequest,
    LakewardenError,
    Unavailable,
    Unsettled,
)
from lakewarden.sessions import enable, jar_path, session, spark_settings
from lakewarden.streaming import stream_upsert
from lakewarden.table import Table

__all__ = [
    "Conflict",
    "CorruptTable",
    "Defect",
    "InvalidRequest",
    "LakewardenError",
    "Table",
    "Unavailable",
    "Unsettled",
    "enable",
    "jar_path",
    "session",
    "spark_settings",
    "stream_upsert",
]
