"""Conflict strategies by the names that Hudi gives them."""

from lakewarden.engine.conflicts.conflicts import ConflictStrategy
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.settings import CONFLICT_STRATEGY

_SUFFIX = "conflictresolutionstrategy"
_STRATEGIES = {
    "simpleconcurrentfilewrites": ConflictStrategy(),
    "simple": ConflictStrategy(),
    "preferwriter": ConflictStrategy(prefers_writers=True),
    "bucketindexconcurrentfilewrites": ConflictStrategy(compares_buckets=True),
}


def strategy_of(settings: Settings, *, has_bucket_index: bool) -> ConflictStrategy:
    """The strategy that is set, or the one that suits the table's index."""
    named = settings[CONFLICT_STRATEGY]
    if not named:
        return ConflictStrategy(compares_buckets=has_bucket_index)
    name = named.rpartition(".")[2].lower().replace("_", "").removesuffix(_SUFFIX)
    if name not in _STRATEGIES:
        raise InvalidRequest(
            "unsupported_conflict_strategy",
            what=f"Lakewarden does not have the conflict strategy {named!r}.",
            why=f"{CONFLICT_STRATEGY.key} knows {', '.join(sorted(_STRATEGIES))}.",
            now="Leave it out: Lakewarden then takes the one that suits the table's index.",
            strategy=named,
        )
    strategy = _STRATEGIES[name]
    return ConflictStrategy(strategy.prefers_writers, strategy.compares_buckets or has_bucket_index)
