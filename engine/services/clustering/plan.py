"""The plan of a clustering: which files become new ones together, which are skipped and why.

Partition filters: which partitions a plan looks at; all others come back in the next one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lakewarden.engine.file_groups.slices import FileGroupId, FileSlice
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.formats.instant_metadata.replace import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    ClusteringStrategy,
    RequestedReplace,
    encode_plan,
)
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.clustering.settings import (
    BEGIN_PARTITION,
    END_PARTITION,
    FILTER_MODE,
    LOOKBACK_PARTITIONS,
    REGEX,
    SELECTED,
    SKIPPED_PARTITIONS,
    FilterMode,
    listed,
)
from lakewarden.engine.services.planning.plan_request import (
    PlanRequest,
    Reason,
    Selection,
    Skipped,
    held_back,
)
from lakewarden.engine.storage.port import Storage

_HOURS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFilter:
    """What is asked of partitions."""

    mode: FilterMode = FilterMode.NONE
    # Named by the settings, and by the request of the caller.
    selected: tuple[str, ...] | None = None
    wished: tuple[str, ...] | None = None
    pattern: re.Pattern[str] | None = None
    begin: str = ""
    end: str = ""
    lookback: int = 0
    skipped: int = 0
    # The hour of the day, for DAY_ROLLING.
    hour: int = 0

    @classmethod
    def of(
        cls,
        settings: Settings,
        mode: FilterMode | None,
        *,
        wished: tuple[str, ...] | None,
        hour: int,
    ) -> "PartitionFilter":
        """The filter that is set; some strategies have a mode of their own."""
        return cls(
            mode=mode or FilterMode(settings[FILTER_MODE]),
            selected=listed(settings[SELECTED]) or None,
            wished=wished,
            pattern=_pattern(settings[REGEX]),
            begin=settings[BEGIN_PARTITION],
            end=settings[END_PARTITION],
            lookback=settings[LOOKBACK_PARTITIONS],
            skipped=settings[SKIPPED_PARTITIONS],
            hour=hour,
        )

    def choose(self, partitions: Sequence[str]) -> Selection[str]:
        """The partitions to look at, in the order in which groups are made."""
        kept, skipped = tuple(sorted(partitions)), []
        for keep, detail in self._steps():
            remaining = keep(kept)
            gone = sorted(set(kept) - set(remaining))
            skipped += [_filtered(name, detail) for name in gone]
            kept = remaining
        return Selection(kept, tuple(skipped))

    def _steps(self) -> "list[tuple[_Keep, str]]":
        steps: list[tuple[_Keep, str]] = []
        for named in (self.wished, self.selected):
            if named is not None:
                steps.append((_among(frozenset(named)), "The call selects other partitions."))
        if self.pattern is not None and self.selected is None:
            detail = f"Its path does not match {self.pattern.pattern!r}."
            steps.append((_where(lambda name: bool(_matches(self.pattern, name))), detail))
        match self.mode:
            case FilterMode.RECENT_DAYS:
                steps.append((self._recent, "It is not among the most recent partitions."))
            case FilterMode.SELECTED_PARTITIONS:
                detail = f"It is not in the range from {self.begin!r} to {self.end!r}."
                steps.append((_where(self._is_in_range), detail))
            case FilterMode.DAY_ROLLING:
                steps.append((self._of_this_hour, "Another hour of the day clusters it."))
        return steps

    def _recent(self, names: tuple[str, ...]) -> tuple[str, ...]:
        behind = names[::-1][self.skipped :]
        return behind[: self.lookback] if self.lookback else behind

    def _is_in_range(self, name: str) -> bool:
        return name >= self.begin and (not self.end or name <= self.end)

    def _of_this_hour(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return names[self.hour :: _HOURS]


_Keep = Callable[[tuple[str, ...]], tuple[str, ...]]


def _among(allowed: frozenset[str]) -> _Keep:
    return _where(lambda name: name in allowed)


def _where(condition: Callable[[str], bool]) -> _Keep:
    return lambda names: tuple(name for name in names if condition(name))


def _matches(pattern: re.Pattern[str] | None, name: str) -> bool:
    return pattern is None or pattern.fullmatch(name) is not None


def _filtered(partition: str, detail: str) -> Skipped:
    return Skipped(
        partition=partition, reason=Reason.PARTITION_FILTERED, detail=detail, comes_back=True
    )


def _pattern(text: str) -> re.Pattern[str] | None:
    if not text:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidRequest(
            "bad_pattern",
            what=f"{text!r} is not a pattern: {error}.",
            why="Clustering matches it against the paths of partitions.",
            now=f"Correct {REGEX.key}.",
            pattern=text,
        ) from None


_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringLimits:
    """What a plan goes by."""

    small_file_bytes: int
    target_file_bytes: int
    group_bytes_max: int
    groups_max: int
    # Whether a file alone is worth a group.
    takes_single: bool
    is_file_by_file: bool = False
    # What a slice without a base file is reckoned as.
    new_base_bytes: int
    plan_request: PlanRequest = field(default_factory=PlanRequest)

    @property
    def rules(self) -> str:
        """What decides whether files are skipped for good, until others join them."""
        figures = (self.small_file_bytes, self.group_bytes_max, self.new_base_bytes)
        switches = (self.takes_single, self.is_file_by_file)
        return " ".join(map(str, (*figures, *switches)))


@dataclass(frozen=True, slots=True)
class ClusterGroup:
    """Slices of one partition whose rows go into so many new file groups."""

    slices: tuple[FileSlice, ...]
    outputs: int


def select_groups(
    slices: Sequence[FileSlice], held: Mapping[FileGroupId, str], limits: ClusteringLimits
) -> Selection[ClusterGroup]:
    """The groups to cluster, by partition in the order given, each from large files to small."""
    by_partition: dict[str, list[FileSlice]] = {}
    skipped: list[Skipped] = []
    for slice_ in slices:
        refused = _refused(slice_, held, limits)
        if refused is None:
            by_partition.setdefault(slice_.partition, []).append(slice_)
        else:
            skipped.append(refused)
    budget = _Budget(limits)
    groups: list[ClusterGroup] = []
    for eligible in by_partition.values():
        for members in _divided(eligible, limits):
            taken = budget.taken(members)
            if len(groups) >= limits.groups_max:
                taken = ()
            if len(members) == 1 and not limits.takes_single:
                skipped.append(
                    Skipped.of_slice(members[0], Reason.ALONE, "No other file joins it.")
                )
                continue
            if len(taken) == 1 and not limits.takes_single:
                taken = ()
            skipped += [_over_limit(one) for one in members[len(taken) :]]
            if taken:
                budget.spend(taken)
                groups.append(ClusterGroup(taken, _outputs(taken, limits)))
    return Selection(tuple(groups), tuple(skipped))


class _Budget:
    """How much of the request is left."""

    def __init__(self, limits: ClusteringLimits) -> None:
        plan_request = limits.plan_request
        self._bytes = plan_request.max_bytes
        self._count = plan_request.max_file_groups

    def taken(self, members: tuple[FileSlice, ...]) -> tuple[FileSlice, ...]:
        """The first members that the request has room for."""
        taken: list[FileSlice] = []
        size = 0
        for slice_ in members:
            size += slice_.size_bytes
            if (self._bytes is not None and size > self._bytes) or (
                self._count is not None and len(taken) >= self._count
            ):
                break
            taken.append(slice_)
        return tuple(taken)

    def spend(self, taken: tuple[FileSlice, ...]) -> None:
        if self._bytes is not None:
            self._bytes -= sum(slice_.size_bytes for slice_ in taken)
        if self._count is not None:
            self._count -= len(taken)


def _refused(
    slice_: FileSlice, held: Mapping[FileGroupId, str], limits: ClusteringLimits
) -> Skipped | None:
    """Why a slice is no candidate."""
    holder = held.get(slice_.key)
    if holder is not None:
        return held_back(slice_, holder)
    size = slice_.base_file.size_bytes if slice_.base_file else 0
    if size >= limits.small_file_bytes:
        detail = f"Its base file has {size} bytes; {limits.small_file_bytes} are large enough."
        return Skipped.of_slice(slice_, Reason.LARGE_ENOUGH, detail)
    return None


def _divided(slices: Sequence[FileSlice], limits: ClusteringLimits) -> list[tuple[FileSlice, ...]]:
    """Slices of a partition in groups that are no larger than allowed, large files first."""
    ordered = sorted(slices, key=lambda one: (-_base_bytes(one, limits), one.file_id))
    if limits.is_file_by_file:
        return [(slice_,) for slice_ in ordered]
    groups: list[list[FileSlice]] = []
    size = 0
    for slice_ in ordered:
        more = _base_bytes(slice_, limits)
        if not groups or size + more > limits.group_bytes_max:
            groups.append([])
            size = 0
        groups[-1].append(slice_)
        size += more
    return [tuple(group) for group in groups]


def _base_bytes(slice_: FileSlice, limits: ClusteringLimits) -> int:
    return slice_.base_file.size_bytes if slice_.base_file else limits.new_base_bytes


def _outputs(slices: Sequence[FileSlice], limits: ClusteringLimits) -> int:
    size = sum(_base_bytes(slice_, limits) for slice_ in slices)
    return 1 if limits.is_file_by_file else max(-(-size // max(limits.target_file_bytes, 1)), 1)


def _over_limit(slice_: FileSlice) -> Skipped:
    detail = "The plan is full."
    return Skipped.of_slice(slice_, Reason.OVER_LIMIT, detail, comes_back=True)


def plan_bytes(
    storage: Storage,
    groups: Sequence[ClusterGroup],
    strategy: ClusteringStrategy,
    *,
    new_base_bytes: int,
    missing_partitions: tuple[str, ...],
    extra: Mapping[str, str],
) -> bytes:
    """What the requested file holds: a plan as Java writes it, files by their full addresses."""
    plan = ClusteringPlan(
        input_groups=tuple(
            ClusteringGroup(
                slices=tuple(_planned(storage, slice_) for slice_ in group.slices),
                metrics=metrics(group.slices, new_base_bytes),
                num_output_file_groups=group.outputs,
            )
            for group in groups
        ),
        strategy=strategy,
        extra_metadata=extra,
        preserve_hoodie_metadata=True,
        missing_schedule_partitions=missing_partitions,
    )
    return encode_plan(
        RequestedReplace(operation_type=Operation.CLUSTER, clustering_plan=plan, extra_metadata={})
    )


def _planned(storage: Storage, slice_: FileSlice) -> ClusteringSlice:
    base = slice_.base_file
    return ClusteringSlice(
        data_file_path=storage.uri(slice_.path(base)) if base else "",
        # Newest first, as Java lists them.
        delta_file_paths=tuple(storage.uri(slice_.path(log)) for log in reversed(slice_.log_files)),
        file_id=slice_.file_id,
        partition_path=slice_.partition,
    )


def metrics(slices: Sequence[FileSlice], new_base_bytes: int) -> dict[str, float]:
    """The figures of a group, by the names that Java gives them."""
    logs = [log for slice_ in slices for log in slice_.log_files]
    log_bytes = sum(log.size_bytes for log in logs)
    bases = [slice_.base_file.size_bytes if slice_.base_file else 0 for slice_ in slices]
    read = (sum(bases) + log_bytes) // _MEGABYTE
    written = sum(size or new_base_bytes for size in bases) // _MEGABYTE
    return {
        "TOTAL_LOG_FILES": float(len(logs)),
        "TOTAL_IO_MB": float(read + written),
        "TOTAL_IO_READ_MB": float(read),
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_IO_WRITE_MB": float(written),
    }
