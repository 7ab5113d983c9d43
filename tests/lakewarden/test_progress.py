"""Whoever waits sees how far the work is: by a callback, or on a line of the terminal."""

import io
import logging
import threading
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.kernel.events import ATTEMPT_ENDED, PROGRESS, Event
from lakewarden.progress import CellLines, Display, Progress, ProgressLine

SCHEMA = pa.schema([("id", pa.string()), ("qty", pa.int64())])
OFTEN_SECONDS = 0.001
WAIT_SECONDS = 60
HALF = Event(PROGRESS, {"action": "compaction", "instant": "1", "step": "x", "done": 1, "total": 2})


def orders(path: object, on_progress: object = None) -> Table:
    Table.create(str(path), SCHEMA, key=["id"], type="mor", properties=ONE_GROUP_EACH)
    table = Table(str(path), on_progress=on_progress)  # type: ignore[arg-type]
    for qty in range(2):
        table.upsert([{"id": f"{number}", "qty": qty} for number in range(4)])
    return table


# Each bucket is a file group, so that a compaction has several tasks.
ONE_GROUP_EACH = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}


def test_a_callback_hears_the_steps_of_a_write_and_every_task_of_a_compaction(
    tmp_path: object,
) -> None:
    heard: list[Progress] = []
    table = orders(f"{tmp_path}/orders", heard.append)
    written = [one.step for one in heard]
    assert written.index("find keys") < written.index("write files") < written.index("commit")
    heard.clear()
    plan = table.compaction.schedule()
    assert plan is not None
    assert plan.run().instants == (plan.instant,)
    tasks = [one for one in heard if one.step == "compact"]
    assert {one.instant for one in tasks} == {plan.instant}
    assert [one.done for one in tasks] == [0, 1, 2, 3][: tasks[0].total + 1]
    assert [tasks[0].done_ratio, tasks[-1].done_ratio] == [0, 1]


def test_a_callback_hears_of_every_slice_that_is_read(tmp_path: object) -> None:
    heard: list[Progress] = []
    table = orders(f"{tmp_path}/orders", heard.append)
    heard.clear()
    assert table.read_arrow().num_rows == 4
    slices = len(table.file_slices())
    assert [(one.step, one.done) for one in heard] == [("read", n) for n in range(slices + 1)]


def test_a_callback_that_fails_harms_no_write_and_is_called_once(
    tmp_path: object, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[Progress] = []

    def fail(progress: Progress) -> None:
        calls.append(progress)
        raise ValueError("no display")

    table = orders(f"{tmp_path}/orders", fail)
    assert len(calls) == 1
    assert table.read_arrow().num_rows == 4
    assert "Showing progress failed" in caplog.text


@dataclass
class Screen(io.StringIO):
    """A terminal that can be waited for."""

    wanted: str
    has_shown: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__()

    def flush(self) -> None:
        if self.wanted in self.getvalue():
            self.has_shown.set()


def test_the_line_is_there_before_the_first_task_and_follows_the_work() -> None:
    first, later = Screen("starting, 0 s"), Screen(" 50 % x, 1 of 2")
    with ProgressLine(first, OFTEN_SECONDS):
        assert first.has_shown.wait(WAIT_SECONDS)
    with ProgressLine(later, OFTEN_SECONDS) as line:
        line(HALF)
        assert later.has_shown.wait(WAIT_SECONDS)
    assert later.getvalue().endswith("\r\x1b[K")


def test_the_line_goes_before_anything_is_printed_and_does_not_come_back() -> None:
    screen = Screen("starting")
    with ProgressLine(screen, OFTEN_SECONDS) as line:
        assert screen.has_shown.wait(WAIT_SECONDS)
        line.end()
        ended = screen.getvalue()
    assert screen.getvalue() == ended
    assert ended.endswith("\r\x1b[K")


def test_without_a_terminal_there_is_no_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with ProgressLine(None) as line:
        line(HALF)
        line(Event("plan_gave_way", {"plan": "1", "to": "2"}))
        names = {one.name for one in threading.enumerate()}
    assert "lakewarden-progress" not in names
    assert caplog.messages == ["The plan 1 gave way to 2."]


@dataclass
class Cell:
    """What IPython's display does, as far as a line needs it."""

    texts: list[str] = field(default_factory=list)
    has_shown: threading.Event = field(default_factory=threading.Event)

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> "Cell":
        assert raw
        assert display_id
        self.texts.append(bundle["text/plain"])
        self.has_shown.set()
        return self

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.texts.append(bundle["text/plain"])


def test_a_notebook_shows_a_line_for_work_that_takes_long_and_leaves_the_last_one() -> None:
    cell = Cell()
    lines = CellLines(cell.display)
    lines(HALF)
    assert cell.has_shown.wait(WAIT_SECONDS)
    lines(Event(PROGRESS, {**HALF.figures, "done": 2}))
    lines(Event(ATTEMPT_ENDED, HALF.figures))
    assert [text.partition("] ")[2] for text in cell.texts] == [
        " 50 % x, 1 of 2",
        "100 % x, 2 of 2",
    ]


def test_a_display_that_fails_harms_no_work() -> None:
    def fail(event: Event) -> None:
        raise ValueError(event.name)

    show = Display(fail)
    show(HALF)
    show(HALF)
