"""Strategies: which partitions and file groups a compaction takes, and in which order.

Each does what Hudi's class of that name does. Several are applied one after the other, each to
what the one before has left.

Candidates: file slices that a compaction could take, with the figures that it chooses by.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol, TypeVar

from lakewarden.engine.file_groups.planned_slices import io_megabytes, operation_of
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.formats.instant_metadata.compaction import CompactionOperation
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.compaction.settings import (
    LOG_BYTES_MIN,
    LOG_FILES_MIN,
    PARTITION_REGEX,
    STRATEGY,
    TARGET_IO_MB,
    TARGET_PARTITIONS,
)
from lakewarden.engine.services.planning.plan_request import Reason, Selection, Skipped


@dataclass(frozen=True, slots=True)
class Candidate:
    """A slice with logs; one without a base file is expected to become a file of full size."""

    slice: FileSlice
    new_base_bytes: int

    @property
    def log_bytes(self) -> int:
        return sum(log.size_bytes for log in self.slice.log_files)

    @property
    def io_mb(self) -> int:
        return io_megabytes(self.slice, self.new_base_bytes)

    @property
    def operation(self) -> CompactionOperation:
        return operation_of(self.slice, self.new_base_bytes)


ChosenT = TypeVar("ChosenT")

_SUFFIX = "CompactionStrategy"
_DATE = re.compile(r"(\d+)/(\d+)/(\d+)", re.ASCII)


class SelectionStrategy(Protocol):
    """One way to choose."""

    @property
    def ranks(self) -> bool:
        """Whether it takes a partition for its place among all partitions of the table."""
        ...

    def partitions(self, names: Sequence[str]) -> Selection[str]: ...

    def groups(self, candidates: Sequence[Candidate]) -> Selection[Candidate]: ...


@dataclass(frozen=True, slots=True)
class UnBounded:
    """Everything, as it comes."""

    @property
    def ranks(self) -> bool:
        return False

    def partitions(self, names: Sequence[str]) -> Selection[str]:
        return Selection(tuple(names))

    def groups(self, candidates: Sequence[Candidate]) -> Selection[Candidate]:
        return Selection(tuple(candidates))


@dataclass(frozen=True, slots=True)
class BoundedIO(UnBounded):
    """As they come, until so many megabytes are read and written."""

    target_mb: int

    def groups(self, candidates: Sequence[Candidate]) -> Selection[Candidate]:
        remaining, chosen, skipped = self.target_mb, [], []
        for candidate in candidates:
            if remaining > 0:
                remaining -= candidate.io_mb
                chosen.append(candidate)
            else:
                detail = (
                    f"{TARGET_IO_MB.key} is {self.target_mb} MB, and other file groups use it up."
                )
                skipped.append(left(candidate, Reason.OVER_LIMIT, detail))
        return Selection(tuple(chosen), tuple(skipped))


@dataclass(frozen=True, slots=True)
class LogFileSizeBased(BoundedIO):
    """The most bytes of logs first."""

    log_bytes_min: int

    def groups(self, candidates: Sequence[Candidate]) -> Selection[Candidate]:
        return _largest(
            candidates,
            lambda candidate: candidate.log_bytes,
            self.log_bytes_min,
            f"bytes of logs; {LOG_BYTES_MIN.key}",
            BoundedIO(self.target_mb),
        )


@dataclass(frozen=True, slots=True)
class LogFileNumBased(BoundedIO):
    """The most log files first."""

    log_files_min: int

    def groups(self, candidates: Sequence[Candidate]) -> Selection[Candidate]:
        return _largest(
            candidates,
            lambda candidate: len(candidate.slice.log_files),
            self.log_files_min,
            f"log files; {LOG_FILES_MIN.key}",
            BoundedIO(self.target_mb),
        )


@dataclass(frozen=True, slots=True)
class DayBased(BoundedIO):
    """The newest partitions by their dates."""

    count: int

    @property
    def ranks(self) -> bool:
        return True

    def partitions(self, names: Sequence[str]) -> Selection[str]:
        newest = sorted(names, key=date_of, reverse=True) if len(names) > 1 else list(names)
        detail = f"It is not among the newest {self.count}; {TARGET_PARTITIONS.key}."
        rest = newest[self.count :]
        return Selection(
            tuple(newest[: self.count]), tuple(filtered(name, detail) for name in rest)
        )


@dataclass(frozen=True, slots=True)
class BoundedPartitionAware(UnBounded):
    """The partitions of the last days, and those of days to come."""

    earliest: date

    def partitions(self, names: Sequence[str]) -> Selection[str]:
        newest = sorted(names, key=date_of, reverse=True)
        detail = f"It is older than {self.earliest}; {TARGET_PARTITIONS.key}."
        return _split(newest, lambda name: date_of(name) >= self.earliest, detail)


@dataclass(frozen=True, slots=True)
class UnBoundedPartitionAware(UnBounded):
    """The partitions that BoundedPartitionAware leaves out."""

    earliest: date

    def partitions(self, names: Sequence[str]) -> Selection[str]:
        newest = sorted(names, key=date_of, reverse=True)
        detail = f"It is not older than {self.earliest}; {TARGET_PARTITIONS.key}."
        return _split(newest, lambda name: date_of(name) < self.earliest, detail)


@dataclass(frozen=True, slots=True)
class PartitionRegexBased(UnBounded):
    """The partitions in whose paths something is found."""

    pattern: re.Pattern[str]

    def partitions(self, names: Sequence[str]) -> Selection[str]:
        detail = f"{PARTITION_REGEX.key} is {self.pattern.pattern!r}."
        return _split(names, lambda name: self.pattern.search(name) is not None, detail)


@dataclass(frozen=True, slots=True)
class Composite:
    """Several strategies, each for what the one before has left."""

    strategies: tuple[SelectionStrategy, ...]

    @property
    def ranks(self) -> bool:
        return any(strategy.ranks for strategy in self.strategies)

    def partitions(self, names: Sequence[str]) -> Selection[str]:
        selection = Selection(tuple(names))
        for strategy in self.strategies:
            selection = _followed(selection, strategy.partitions(selection.chosen))
        return selection

    def groups(self, candidates: Sequence[Candidate]) -> Selection[Candidate]:
        selection = Selection(tuple(candidates))
        for strategy in self.strategies:
            selection = _followed(selection, strategy.groups(selection.chosen))
        return selection


def chosen_strategy(settings: Settings, today: date) -> SelectionStrategy:
    """The strategy that is set; `today` is the date in the table's time zone."""
    names = [name.strip() for name in settings[STRATEGY].split(",") if name.strip()]
    strategies = tuple(_named(name, settings, today) for name in names)
    if not strategies:
        raise _unknown(settings[STRATEGY])
    return strategies[0] if len(strategies) == 1 else Composite(strategies)


def date_of(partition: str) -> date:
    """The day of a partition `2026/11/18`, also where its parts are named or joined by dashes."""
    bare = partition
    if "=" in bare:
        bare = re.sub(r"/.*?=", "/", re.sub(r".*?=", "", bare, count=1))
    found = _DATE.match(bare.replace("-", "/"))
    try:
        if found is not None:
            return date(*map(int, found.groups()))
    except (ValueError, OverflowError):
        pass
    raise InvalidRequest(
        "no_day_partition",
        what=f"The partition {partition!r} is not a day.",
        why="The compaction strategy selects days, from paths like 2026/11/18.",
        now=f"Choose another strategy in {STRATEGY.key}.",
        partition=partition,
    )


def left(candidate: Candidate, reason: Reason, detail: str) -> Skipped:
    """A candidate that waits for the next plan."""
    return Skipped.of_slice(candidate.slice, reason, detail, comes_back=True)


def filtered(partition: str, detail: str) -> Skipped:
    """A partition that waits for another plan, without a look into it."""
    return Skipped(
        partition=partition, reason=Reason.PARTITION_FILTERED, detail=detail, comes_back=True
    )


def _followed(first: Selection[ChosenT], second: Selection[ChosenT]) -> Selection[ChosenT]:
    return Selection(second.chosen, (*first.skipped, *second.skipped))


def _split(names: Sequence[str], takes: Callable[[str], bool], detail: str) -> Selection[str]:
    chosen = tuple(name for name in names if takes(name))
    rest = tuple(filtered(name, detail) for name in names if not takes(name))
    return Selection(chosen, rest)


def _largest(
    candidates: Sequence[Candidate],
    figure: Callable[[Candidate], int],
    least: int,
    what: str,
    bound: BoundedIO,
) -> Selection[Candidate]:
    """Candidates with a figure of at least so much, the largest first, within a bound."""
    large = sorted((one for one in candidates if figure(one) >= least), key=figure, reverse=True)
    small = tuple(
        left(one, Reason.BELOW_THRESHOLD, f"{figure(one)} {what} is {least}.")
        for one in candidates
        if figure(one) < least
    )
    selection = bound.groups(large)
    return Selection(selection.chosen, (*small, *selection.skipped))


def _named(name: str, settings: Settings, today: date) -> SelectionStrategy:
    short = name.rpartition(".")[2].removesuffix(_SUFFIX)
    make = _STRATEGIES.get(short)
    if make is None:
        raise _unknown(name)
    return make(settings, today)


def _unknown(name: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_strategy",
        what=f"Lakewarden has no compaction strategy {name!r}.",
        why=f"It has Hudi's: {', '.join(_STRATEGIES)}.",
        now=f"Give {STRATEGY.key} one of these names, or several, separated by commas.",
        strategy=name,
    )


def _pattern(settings: Settings) -> re.Pattern[str]:
    text = settings[PARTITION_REGEX]
    try:
        if text:
            return re.compile(text)
        why = "It is not set."
    except re.error as error:
        why = f"{text!r} is not a regular expression: {error}."
    raise InvalidRequest(
        "bad_setting",
        what=f"PartitionRegexBased needs {PARTITION_REGEX.key}.",
        why=why,
        now="Set it to a pattern for the paths of partitions.",
    )


def _earliest(settings: Settings, today: date) -> date:
    return today - timedelta(days=settings[TARGET_PARTITIONS])


_STRATEGIES: dict[str, Callable[[Settings, date], SelectionStrategy]] = {
    "LogFileSizeBased": lambda s, _: LogFileSizeBased(s[TARGET_IO_MB], s[LOG_BYTES_MIN]),
    "LogFileNumBased": lambda s, _: LogFileNumBased(s[TARGET_IO_MB], s[LOG_FILES_MIN]),
    "BoundedIO": lambda s, _: BoundedIO(s[TARGET_IO_MB]),
    "UnBounded": lambda s, _: UnBounded(),
    "DayBased": lambda s, _: DayBased(s[TARGET_IO_MB], s[TARGET_PARTITIONS]),
    "BoundedPartitionAware": lambda s, today: BoundedPartitionAware(_earliest(s, today)),
    "UnBoundedPartitionAware": lambda s, today: UnBoundedPartitionAware(_earliest(s, today)),
    "PartitionRegexBased": lambda s, _: PartitionRegexBased(_pattern(s)),
}
