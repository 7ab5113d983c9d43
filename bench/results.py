"""Results: kept for each topic when it was measured, shown all together in RESULTS.md."""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from bench.machine import description
from bench.measure import Bound, Measure, Rounds
from bench.places import CHECKOUT, WORK

KEPT = WORK / "results"
PAGE = CHECKOUT / "bench" / "RESULTS.md"
LESSONS = CHECKOUT / "bench" / "LESSONS.md"

# Above this, figures say more about the neighbours than about us.
QUIET_CORES = 0.2

_VERDICTS = {True: "yes", False: "**no**", None: ""}

HEAD = """\
# Results

Written by `make bench`; do not edit. What we and a peer take for the same work is measured in one
run, in turns, and the figure is the ratio of the medians of several rounds. Tables are in the page
cache, on the local disk. "Others" are the processes that had nothing to do with the measuring and
the cores they used. Below each table stands what its figures include.
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measures of one topic, and when and where they were taken."""

    topic: str
    title: str
    measured_at: str
    machine: Mapping[str, str]
    measures: tuple[Measure, ...]


def outcome(topic: str, title: str, measures: Sequence[Measure]) -> Measured:
    at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return Measured(topic, title, at, description(), tuple(measures))


def keep(outcome: Measured) -> None:
    """Remember the outcome in place of the topic's last one."""
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{outcome.topic}.json").write_text(json.dumps(asdict(outcome), indent=1))


def kept(topics: Iterable[str]) -> list[Measured]:
    """The last outcomes, in the order of the topics; those never measured are skipped."""
    paths = [KEPT / f"{topic}.json" for topic in topics]
    return [_outcome(json.loads(path.read_text())) for path in paths if path.is_file()]


def write_page(outcomes: Sequence[Measured]) -> None:
    """All outcomes on one page; what was measured on another machine than the last says so."""
    last = max(outcomes, key=lambda outcome: outcome.measured_at)
    sections = [
        HEAD,
        f"Machine: {_machine(last)}.\n",
        *(_section(outcome, elsewhere=outcome.machine != last.machine) for outcome in outcomes),
        LESSONS.read_text().strip(),
    ]
    PAGE.write_text("\n".join(sections) + "\n")


def table(measures: Sequence[Measure]) -> str:
    """The measures as a Markdown table."""
    rows = [("case", "figure", "required", "met", "seconds: median (fastest to slowest)", "others")]
    rows += [
        (
            measure.case,
            f"**{_digits(measure.figure)}** {measure.unit}",
            str(measure.bound or "none"),
            _VERDICTS[measure.is_met],
            "; ".join(f"{name} {_spread(taken)}" for name, taken in measure.rounds.seconds.items()),
            _noise(measure.rounds.foreign_cores),
        )
        for measure in measures
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---|---|---|---|---|---|", *lines[1:]])


def _section(outcome: Measured, *, elsewhere: bool) -> str:
    remarks = [f"* {measure.case}: {measure.includes}" for measure in outcome.measures]
    where = f", on another machine: {_machine(outcome)}" if elsewhere else ""
    circumstances = f"Measured on {outcome.measured_at}{where}."
    return "\n".join(
        [f"## {outcome.title}", "", table(outcome.measures), "", *remarks, "", circumstances, ""]
    )


def _noise(cores: float) -> str:
    return f"{cores:.2f} cores" + (", **noisy**" if cores > QUIET_CORES else "")


def _machine(outcome: Measured) -> str:
    return ", ".join(f"{name} {what}" for name, what in outcome.machine.items())


def _spread(taken: Sequence[float]) -> str:
    middle = _digits(statistics.median(taken))
    if len(taken) == 1:
        return middle
    return f"{middle} ({_digits(min(taken))} to {_digits(max(taken))})"


def _digits(number: float) -> str:
    """Three of them, as nobody believes the others."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _outcome(kept: dict[str, object]) -> Measured:
    measures = tuple(
        Measure(
            **{
                **measure,
                "bound": measure["bound"] and Bound(**measure["bound"]),
                "rounds": _rounds(**measure["rounds"]),
            }
        )
        for measure in kept.pop("measures")
    )
    return Measured(**kept, measures=measures)


def _rounds(seconds: Mapping[str, Sequence[float]], foreign_cores: float) -> Rounds:
    return Rounds({name: tuple(taken) for name, taken in seconds.items()}, foreign_cores)
