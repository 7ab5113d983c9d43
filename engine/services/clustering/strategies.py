"""Strategies of clustering by the names of Hudi's classes, and what each stands for here."""

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
    "SizeBasedClusteringPlanStrategy": _BY_SIZE,
    "RecentDaysClusteringPlanStrategy": PlanStrategy(FilterMode.RECENT_DAYS),
    "SelectedPartitionsClusteringPlanStrategy": PlanStrategy(FilterMode.SELECTED_PARTITIONS),
    "SingleFileSortPlanStrategy": PlanStrategy(is_file_by_file=True),
    # Row groups are copied as bytes wherever that can be done, whoever planned it.
    "StreamCopyClusteringPlanStrategy": _BY_SIZE,
}
_EXECUTORS = (
    "SortAndSizeExecutionStrategy",
    "SingleFileSortExecutionStrategy",
    "StreamCopyClusteringExecutionStrategy",
)
_ENGINES = ("Spark", "Java", "Flink")


def plan_strategy(name: str) -> PlanStrategy:
    """The strategy that a class of Hudi stands for."""
    found = _PLANNERS.get(_short(name))
    if found is None:
        raise _unknown(name, STRATEGY.key)
    return found


def check_execution(name: str | None) -> None:
    """Refuse plans that are to be carried out in a way of their own, as those of buckets are."""
    if name and _short(name) not in _EXECUTORS:
        raise _unknown(name, EXECUTION.key)


def _short(name: str) -> str:
    """The class without its package, and without the engine that it is written for."""
    own = name.strip().rpartition(".")[2]
    for engine in _ENGINES:
        own = own.removeprefix(engine)
    return own


def _unknown(name: str, key: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_clustering_strategy",
        what=f"The strategy {name} is not implemented.",
        why="It divides or names files in a way of its own.",
        now=f"Leave {key} out, or cluster with Hudi.",
        strategy=name,
    )
