"""Plans: what is pending, which process runs it, what it holds back, and how to end it."""

from lakewarden.procedures.plans.attempts import ShowHeartbeats, ShowLedger, ShowLocks, ShowMarkers
from lakewarden.procedures.plans.health import ShowBlockers, TableHealth
from lakewarden.procedures.plans.plans import CancelPlan, ExplainPlan, ShowPlans

__all__ = [
    "CancelPlan",
    "ExplainPlan",
    "ShowBlockers",
    "ShowHeartbeats",
    "ShowLedger",
    "ShowLocks",
    "ShowMarkers",
    "ShowPlans",
    "TableHealth",
]
