"""Plans: what is pending, which process runs it, what it holds back, and how to end it."""

from lakewarden.procedures.plans.cancel_plan import CancelPlan
from lakewarden.procedures.plans.explain_plan import ExplainPlan
from lakewarden.procedures.plans.show_blockers import ShowBlockers
from lakewarden.procedures.plans.show_heartbeats import ShowHeartbeats
from lakewarden.procedures.plans.show_ledger import ShowLedger
from lakewarden.procedures.plans.show_locks import ShowLocks
from lakewarden.procedures.plans.show_markers import ShowMarkers
from lakewarden.procedures.plans.show_plans import ShowPlans
from lakewarden.procedures.plans.table_health import TableHealth

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
