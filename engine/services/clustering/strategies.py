"""Strategies of clustering by the names of Hudi's classes, and what each stands for here."""

from collections.abc import Iterable
from dataclasses import dataclass

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.clustering.settings import EXECUTION, STRATEGY, FilterMode


@dataclass(frozen=True, slots=True)
class PlanStrategy:
    """How files are chosen and put into groups."""

    # What the strategy says of partitions, whatever is set.
    mode: FilterMode | None = None
    # Each file is a group of its own, and becomes one file again.
    is_file_by_file: bool = False


_BY_SIZE = PlanStrategy()
_PLANNERS = {
    "SizeBased": _BY_SIZE,
    "RecentDays": PlanStrategy(FilterMode.RECENT_DAYS),
    "SelectedPartitions": PlanStrategy(FilterMode.SELECTED_PARTITIONS),
    "SingleFileSort": PlanStrategy(is_file_by_file=True),
    # Row groups are copied as bytes where possible, whichever strategy the plan names.
    "StreamCopy": _BY_SIZE,
}
_EXECUTORS = ("SortAndSize", "SingleFileSort", "StreamCopy")
_ENGINES = ("Spark", "Java", "Flink")
_SUFFIXES = ("PlanStrategy", "ExecutionStrategy", "Clustering")


def plan_strategy(name: str) -> PlanStrategy:
    """The strategy that a class of Hudi stands for."""
    found = _PLANNERS.get(_short(name))
    if found is None:
        raise _unknown(name, STRATEGY.key, _PLANNERS)
    return found


def check_execution(name: str | None) -> None:
    """Refuse plans that need an execution of their own, such as those of buckets."""
    if name and _short(name) not in _EXECUTORS:
        raise _unknown(name, EXECUTION.key, _EXECUTORS)


def _short(name: str) -> str:
    """The class without package, without the engine it is written for, and without its kind."""
    own = name.strip().rpartition(".")[2]
    for engine in _ENGINES:
        own = own.removeprefix(engine)
    for suffix in _SUFFIXES:
        own = own.removesuffix(suffix)
    return own


def _unknown(name: str, key: str, known: Iterable[str]) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_clustering_strategy",
        what=f"Lakewarden has no clustering strategy {name!r}.",
        why=f"It has {', '.join(known)}; others divide or name files differently.",
        now=f"Give {key} one of these names, leave it out, or cluster with Hudi.",
        strategy=name,
    )
