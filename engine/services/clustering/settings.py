"""Clustering's settings: Hudi's own keys, defaults and classes, and what only we know."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, flag, one_of, whole_number

PREFIX = "hoodie.clustering.plan.strategy."
_EXECUTION_PACKAGE = "org.apache.hudi.client.clustering.run.strategy."


class FilterMode(StrEnum):
    """Which partitions a plan looks at."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"

    @property
    def ranks(self) -> bool:
        """Whether a partition counts for its place among all partitions of the table."""
        return self in (FilterMode.RECENT_DAYS, FilterMode.DAY_ROLLING)


class LayoutStrategy(StrEnum):
    """How the rows of a group are ordered by several columns."""

    LINEAR = "LINEAR"
    ZORDER = "ZORDER"
    HILBERT = "HILBERT"


STRATEGY = Setting(
    f"{PREFIX}class",
    "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy",
    str,
    "How files are put into groups, by the name of Hudi's class, in full or in short",
    short="strategy",
)
EXECUTION = Setting(
    "hoodie.clustering.execution.strategy.class",
    f"{_EXECUTION_PACKAGE}SparkSortAndSizeExecutionStrategy",
    str,
    "The class that executes a plan in Hudi; Lakewarden executes all plans the same way",
)
FILTER_MODE = Setting(
    "hoodie.clustering.plan.partition.filter.mode",
    FilterMode.NONE.value,
    one_of(*FilterMode),
    "Which partitions a clustering looks at: all, the most recent ones, those of a range, or every"
    " hour another twenty-fourth of them",
)
LOOKBACK_PARTITIONS = Setting(
    f"{PREFIX}daybased.lookback.partitions",
    2,
    whole_number,
    "How many partitions RECENT_DAYS takes, from the last one back",
)
SKIPPED_PARTITIONS = Setting(
    f"{PREFIX}daybased.skipfromlatest.partitions",
    0,
    whole_number,
    "How many of the last partitions RECENT_DAYS leaves alone",
)
BEGIN_PARTITION = Setting(
    f"{PREFIX}cluster.begin.partition", "", str, "The first partition of SELECTED_PARTITIONS"
)
END_PARTITION = Setting(
    f"{PREFIX}cluster.end.partition", "", str, "The last partition of SELECTED_PARTITIONS"
)
SELECTED = Setting(
    f"{PREFIX}partition.selected",
    "",
    str,
    "The partitions to cluster, separated by commas, whether they have changed or not",
)
REGEX = Setting(
    f"{PREFIX}partition.regex.pattern",
    "",
    str,
    "What the whole path of a partition has to match to be clustered",
)
SMALL_FILE_LIMIT = Setting(
    f"{PREFIX}small.file.limit",
    300 << 20,
    whole_number,
    "Base files of fewer bytes are clustered",
)
TARGET_FILE_BYTES = Setting(
    f"{PREFIX}target.file.max.bytes",
    1 << 30,
    whole_number,
    "The target size of files after clustering, in bytes",
)
GROUP_BYTES_MAX = Setting(
    f"{PREFIX}max.bytes.per.group",
    2 << 30,
    whole_number,
    "Bytes of the files that are clustered together",
)
GROUPS_MAX = Setting(
    f"{PREFIX}max.num.groups", 30, whole_number, "How many groups of files a plan has at most"
)
TAKES_SINGLE = Setting(
    f"{PREFIX}single.group.clustering.enabled",
    True,
    flag,
    "Whether a file that is alone in its group is clustered though nothing is sorted",
)
SORT_COLUMNS = Setting(
    f"{PREFIX}sort.columns", "", str, "The columns to sort by, separated by commas"
)
LAYOUT = Setting(
    "hoodie.layout.optimize.strategy",
    LayoutStrategy.LINEAR.value,
    one_of(*LayoutStrategy),
    "How rows are sorted by several columns: one after the other, or along a curve through all",
    short="layout",
)
SAMPLE_SIZE = Setting(
    "hoodie.layout.optimize.build.curve.sample.size",
    200_000,
    whole_number,
    "How many values of each column are sampled for a curve",
)
INLINE = Setting(
    "hoodie.clustering.inline",
    False,
    flag,
    "Whether writes schedule a clustering when one is due, and run it",
)
SCHEDULE_INLINE = Setting(
    "hoodie.clustering.schedule.inline",
    False,
    flag,
    "Whether writes schedule a clustering when one is due, for another process to run",
)
INLINE_MAX_COMMITS = Setting(
    "hoodie.clustering.inline.max.commits",
    4,
    whole_number,
    "Commits since the last clustering after which another one is due",
)
COPIED_ROWS_MIN = Setting(
    "lakewarden.clustering.copied_rows_min",
    1 << 13,
    whole_number,
    "Row groups of fewer rows are encoded anew, many together, where others are copied as bytes",
)
SORTED_TOGETHER_BYTES = Setting(
    "lakewarden.clustering.sorted_together_bytes",
    256 << 20,
    whole_number,
    "Bytes of files whose rows are sorted in memory at once; larger groups are read several times",
)
CLUSTERING_SETTINGS: tuple[Setting[object], ...] = (
    STRATEGY,
    EXECUTION,
    FILTER_MODE,
    LOOKBACK_PARTITIONS,
    SKIPPED_PARTITIONS,
    BEGIN_PARTITION,
    END_PARTITION,
    SELECTED,
    REGEX,
    SMALL_FILE_LIMIT,
    TARGET_FILE_BYTES,
    GROUP_BYTES_MAX,
    GROUPS_MAX,
    TAKES_SINGLE,
    SORT_COLUMNS,
    LAYOUT,
    SAMPLE_SIZE,
    INLINE,
    SCHEDULE_INLINE,
    INLINE_MAX_COMMITS,
    COPIED_ROWS_MIN,
    SORTED_TOGETHER_BYTES,
)


def listed(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


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
