"""Plans: what is pending, which process runs it, what it holds back, and how to end it."""

from lakewarden.procedures.plans.attempts import (
    ShowHeartbeats,
    ShowLedger,
    ShowLocks,
    ShowMarkers,
    ShowRivals,
)
from lakewarden.procedures.plans.health import ShowBlockers, TableHealth
from lakewarden.procedures.plans.lock_audit import (
    CleanupAuditLock,
    SetAuditLock,
    ShowAuditLockStatus,
    ValidateAuditLock,
)
from lakewarden.procedures.plans.plans import CancelPlan, ExplainPlan, ShowPlans
from lakewarden.procedures.plans.streams import ForgetStream, ShowStreams

__all__ = [
    "CancelPlan",
    "CleanupAuditLock",
    "ExplainPlan",
    "ForgetStream",
    "SetAuditLock",
    "ShowAuditLockStatus",
    "ShowBlockers",
    "ShowHeartbeats",
    "ShowLedger",
    "ShowLocks",
    "ShowMarkers",
    "ShowPlans",
    "ShowRivals",
    "ShowStreams",
    "TableHealth",
    "ValidateAuditLock",
]
