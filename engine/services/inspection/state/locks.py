"""The table's lock as a value for tables."""

from dataclasses import dataclass

from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.pending_instants import age_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LockView:
    """The lock that writers of the table share by these settings, and who has it."""

    # Kind and place.
    lock: str
    # None while it is free.
    owner: str | None = None
    since_ms: int | None = None
    age_seconds: float | None = None
    expires_at_ms: int | None = None


def locks(context: Context) -> tuple[LockView, ...]:
    """The lock, whether it is held or not; looking takes nothing."""
    lock, holder = context.lock.name, context.lock.holder()
    if holder is None:
        return (LockView(lock=lock),)
    return (
        LockView(
            lock=lock,
            owner=holder.owner,
            since_ms=holder.since_ms,
            age_seconds=age_seconds(context, holder.since_ms),
            expires_at_ms=holder.expires_ms,
        ),
    )
