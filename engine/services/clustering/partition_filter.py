"""Partition filters: which partitions a plan looks at; all others come back in the next one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
from lakewarden.engine.services.planning.selection import Reason, Selection, Skipped

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
