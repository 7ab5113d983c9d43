"""Progress is shown while work goes on, and goes away with it."""

import io
import threading
from collections.abc import Sequence
from pathlib import Path

from lakewarden.cli.arguments import parse
from lakewarden.cli.progress import Progress, bar
from lakewarden.engine.kernel.errors import Unavailable
from lakewarden.engine.services.inspection.state.plans import PendingPlan
from lakewarden.engine.timeline.instants.state import InstantState

OFTEN_SECONDS = 0.001


def plan(done_ratio: float | None) -> PendingPlan:
    return PendingPlan(
        instant="20261118101500123",
        service="compaction",
        state=InstantState.INFLIGHT_HELD,
        cancellable=True,
        partitions_count=1,
        file_groups_count=4,
        input_bytes=None,
        attempt=1,
        owner="me",
        host="here",
        step="merge",
        done_ratio=done_ratio,
        requested_at_ms=None,
        age_seconds=None,
        started_at_ms=None,
        last_heartbeat_at_ms=None,
        expires_at_ms=None,
        missing_partitions_count=0,
        blocks=(),
    )


def test_a_bar_is_as_long_as_the_work_is_done() -> None:
    assert bar([]) == bar([plan(None)]) == ""
    assert "[" + " " * 30 + "]   0 %" in bar([plan(0.0)])
    assert "[" + "#" * 30 + "] 100 %" in bar([plan(None), plan(1.0)])


def test_the_line_is_shown_while_work_goes_on_and_taken_away() -> None:
    looked, stream = threading.Event(), io.StringIO()
    ratios = iter([0.25, 0.5])

    def look() -> Sequence[PendingPlan]:
        ratio = next(ratios, None)
        if ratio is None:
            looked.set()
        return [plan(ratio)]

    with Progress(look, stream, OFTEN_SECONDS):
        assert looked.wait(60)
    shown = stream.getvalue().split("\r\x1b[K")
    assert [part[-12:] for part in shown[1:3]] == [
        " 25 % merge"[-12:].rjust(12),
        "]  50 % merge"[-12:],
    ]
    assert shown[-1] == ""


def test_a_look_that_fails_ends_the_line_and_not_the_work() -> None:
    failed, stream = threading.Event(), io.StringIO()

    def look() -> Sequence[PendingPlan]:
        failed.set()
        raise Unavailable("out_of_reach", what="It is out of reach.", why="No route.", now="Wait.")

    with Progress(look, stream, OFTEN_SECONDS):
        assert failed.wait(60)
    assert stream.getvalue() == ""


def test_where_nobody_looks_nothing_is_shown(tmp_path: Path) -> None:
    with Progress.of(parse(["compact", str(tmp_path)])) as progress:
        assert progress is not None
    assert not [one for one in threading.enumerate() if one.name == "lakewarden-progress"]
