"""Coverage: how often each operation was played, and each pair of them, on which tables."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from statistics import median
from textwrap import fill

from tests.histories.every_operation import OPERATIONS
from tests.histories.history import Played

Tally = Counter[str]
_BETWEEN = " → "
RAREST = 20
# In how many histories each pair of operations has to have come.
OFTEN_ENOUGH = 50
PAGE_WIDTH = 100


@dataclass(slots=True)
class Coverage:
    """What many histories come to; the figures of campaigns add up."""

    # All histories by the number of their steps.
    lengths: Tally = field(default_factory=Counter)
    operations: Tally = field(default_factory=Counter)
    # The same by the type of the table.
    on_types: Tally = field(default_factory=Counter)
    # The second at any time after the first, once for each history.
    pairs: Tally = field(default_factory=Counter)
    tables: Tally = field(default_factory=Counter)
    # By operation and code.
    refusals: Tally = field(default_factory=Counter)
    # Of the past: what was answered, and what was refused by which code.
    past: Tally = field(default_factory=Counter)
    deaths: Tally = field(default_factory=Counter)
    # By sort of failure.
    failures: Tally = field(default_factory=Counter)

    def add(self, played: Played) -> None:
        """Count one history in."""
        self.lengths[str(len(played.names))] += 1
        self.operations.update(played.names)
        self.pairs.update(_BETWEEN.join(pair) for pair in _pairs(played.names))
        kind = played.history.kind
        self.on_types.update(f"{kind.type} {name}" for name in played.names)
        self.tables[f"{kind.type}, {kind.index}"] += 1
        for name in (
            "is_partitioned",
            "is_event_time",
            "has_metadata",
            "is_partial",
            "is_odd",
            "is_composite",
            "is_floating",
        ):
            word = name.partition("_")[2].replace("_", " ")
            self.tables[word if getattr(kind, name) else f"not {word}"] += 1
        self.refusals.update({" ".join(key): count for key, count in played.refusals.items()})
        self.past.update({" ".join(key): count for key, count in played.refused_past.items()})
        self.past.update(played.answered_past)
        self.deaths["deaths"] += played.deaths
        if played.failure:
            self.failures[played.sort] += 1

    def merge(self, other: "Coverage") -> None:
        """Count what another part of a campaign has come to."""
        for name in _NAMES:
            getattr(self, name).update(getattr(other, name))

    @property
    def histories(self) -> int:
        return self.lengths.total()

    @property
    def steps(self) -> int:
        return self.operations.total()

    @property
    def refused_share(self) -> float:
        return self.refusals.total() / max(self.steps, 1)

    def rarest_pairs(self, count: int) -> list[tuple[str, int]]:
        """The pairs that were played least often."""
        return sorted(self._every_pair(), key=lambda one: one[1])[:count]

    def _every_pair(self, of: str = "") -> list[tuple[str, int]]:
        """Each ordered pair of operations, or those of one, and in how many histories it came."""
        return [
            (pair, self.pairs[pair])
            for a in OPERATIONS
            for b in OPERATIONS
            if of in ("", a, b)
            for pair in [_BETWEEN.join((a, b))]
        ]

    def save(self, path: Path) -> None:
        """Keep the figures, together with those that are there already."""
        whole = load_coverage(path)
        whole.merge(self)
        path.write_text(json.dumps({name: getattr(whole, name) for name in _NAMES}, indent=1))

    def markdown(self) -> str:
        """The figures as a page has them."""
        return "\n\n".join(
            [
                self._summary(),
                self._by_operation(),
                _table("rarest pair", "histories", Counter(dict(self.rarest_pairs(RAREST)))),
                _table("table", "histories", self.tables),
                _table("refused", "times", self.refusals),
                _table("asked of the past", "times", self.past),
                _table("failed", "histories", self.failures),
            ]
        )

    def page(self) -> str:
        """What docs/reliability.md says of all that was played."""
        enough = sum(count >= OFTEN_ENOUGH for _, count in self._every_pair())
        rarest = ", ".join(f"{pair} {count:,}" for pair, count in self.rarest_pairs(5))
        pairs = (
            f"Of {len(self._every_pair()):,} ordered pairs of the {len(OPERATIONS)} operations"
            f" {enough:,} came in at least {OFTEN_ENOUGH} histories each; the rarest: {rarest}."
        )
        listed = [
            f"{head}: {' · '.join(f'{name} {count:,}' for name, count in sorted(tally.items()))}."
            for head, tally in (
                ("Histories by table", self.tables),
                ("Refused, by operation and code", self.refusals),
                ("Asked of the past", self.past),
                ("Failed", self.failures),
            )
            if tally
        ]
        parts = [self._summary(), *listed, pairs]
        wrapped = [fill(part, PAGE_WIDTH, break_on_hyphens=False) for part in parts]
        return "\n\n".join([*wrapped, self._by_operation()])

    def _summary(self) -> str:
        lengths = [int(length) for length, count in self.lengths.items() for _ in range(count)]
        return (
            f"{self.histories:,} histories, {self.steps:,} steps, {median(lengths or [0]):.0f} in"
            f" the median; {self.deaths['deaths']:,} deaths; {100 * self.refused_share:.1f} % of"
            f" the steps refused."
        )

    def _by_operation(self) -> str:
        """How often each operation was played on either type of table, and its rarest pair."""
        rows = []
        for name, _ in self.operations.most_common():
            pair, count = min(self._every_pair(name), key=lambda one: one[1])
            types = f"{self.on_types[f'cow {name}']:,} | {self.on_types[f'mor {name}']:,}"
            rows.append(f"| {name} | {types} | {pair}: {count:,} |")
        head = "| operation | copy-on-write | merge-on-read | its rarest pair, in histories |"
        return "\n".join([head, "| --- | ---: | ---: | --- |", *rows])


_NAMES = tuple(field.name for field in fields(Coverage))


def load_coverage(path: Path) -> Coverage:
    """The figures that were saved so far."""
    if not path.exists():
        return Coverage()
    saved: Mapping[str, Mapping[str, int]] = json.loads(path.read_text())
    return Coverage(**{name: Counter(saved.get(name, {})) for name in _NAMES})


def _pairs(names: list[str]) -> Iterable[tuple[str, str]]:
    return {(a, b) for place, a in enumerate(names) for b in names[place + 1 :]}


def _table(what: str, how_often: str, tally: Tally) -> str:
    rows = [f"| {name} | {count:,} |" for name, count in tally.most_common()]
    return "\n".join([f"| {what} | {how_often} |", "| --- | ---: |", *rows])
