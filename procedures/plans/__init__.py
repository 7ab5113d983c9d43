"""Plans: what is pending, who has it in hand, and how to end it."""

from lakewarden.procedures.plans.cancel_plan import CancelPlan

__all__ = ["CancelPlan"]
