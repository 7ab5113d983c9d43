"""Moments: times as rows show them."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime.fromtimestamp(0, UTC)


def moment_of(epoch_ms: int | None) -> datetime | None:
    """A time with its zone; nothing where the time is not known."""
    return None if epoch_ms is None else _EPOCH + timedelta(milliseconds=epoch_ms)
