"""Progress: how far the work of a call is, for a callback, a line in a terminal, or a notebook."""

import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Protocol, Self, TextIO

from lakewarden.engine.kernel.events import ATTEMPT_ENDED, PROGRESS, Event, EventSink, log_event

WIDTH = 30
# Work that is done sooner shows nothing; the first line is there within the first second.
SHOWN_AFTER_SECONDS = 0.5
_ERASE = "\r\x1b[K"
_LOG = logging.getLogger("lakewarden")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a call is: its action and instant once there is one, the step, and its tasks."""

    step: str
    action: str = ""
    instant: str = ""
    done: int = 0
    total: int = 0

    @property
    def done_ratio(self) -> float | None:
        """From 0 to 1; None as long as the number of tasks is not known."""
        return self.done / self.total if self.total else None

    def __str__(self) -> str:
        """One line.

        >>> print(Progress(action="compaction", instant="2026", step="compact", done=1, total=4))
        compaction 2026 [#######                       ]  25 % compact, 1 of 4
        >>> print(Progress(step="find keys"))
        find keys
        """
        words = [self.action, self.instant]
        if self.done_ratio is not None:
            filled = "#" * int(self.done_ratio * WIDTH)
            words.append(f"[{filled:<{WIDTH}}] {self.done_ratio * 100:3.0f} %")
        counted = f", {self.done} of {self.total}" if self.total else ""
        return " ".join(filter(None, [*words, f"{self.step}{counted}"]))


ProgressCallback = Callable[[Progress], object]


def reporting(callback: ProgressCallback | None) -> EventSink:
    """A sink that logs, and tells a callback of progress; in a notebook, its cell without one."""
    if callback is not None:
        return Display(lambda event: event.name == PROGRESS and callback(progress_of(event)))
    display = _notebook_display()
    return log_event if display is None else Display(CellLines(display))


class Display:
    """A sink that logs, and shows progress.

    Work is never undone for a display that fails: that is logged once, and it is not used again.
    """

    def __init__(self, show: Callable[[Event], object]) -> None:
        self._show: Callable[[Event], object] | None = show

    def __call__(self, event: Event) -> None:
        log_event(event)
        if self._show is not None:
            try:
                self._show(event)
            except Exception:
                self._show = None
                _LOG.exception("Showing progress failed and is not tried again.")


def progress_of(event: Event) -> Progress:
    """What an event about progress says."""
    figures = event.figures
    return Progress(
        action=str(figures.get("action", "")),
        instant=str(figures.get("instant", "")),
        step=str(figures["step"]),
        done=int(figures.get("done", 0)),
        total=int(figures.get("total", 0)),
    )


class ProgressLine:
    """One line on a terminal, renewed while work goes on, that goes when it is done."""

    def __init__(
        self, stream: TextIO | None, interval_seconds: float = SHOWN_AFTER_SECONDS
    ) -> None:
        self._stream = stream
        self._interval_seconds = interval_seconds
        self._last = Progress(step="starting")
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._show, name="lakewarden-progress", daemon=True)

    @classmethod
    def on_terminal(cls) -> Self:
        """The line of this process; nothing is shown where no terminal is."""
        return cls(sys.stderr if sys.stderr.isatty() else None)

    def __call__(self, event: Event) -> None:
        if event.name == PROGRESS:
            self._last = progress_of(event)
        else:
            log_event(event)

    def __enter__(self) -> Self:
        if self._stream is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """Take the line away, before anything else is printed; once is enough."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _show(self) -> None:
        assert self._stream is not None
        began, has_shown = monotonic(), False
        while not self._is_over.wait(self._interval_seconds):
            self._stream.write(f"{_ERASE}{self._last}, {monotonic() - began:.0f} s")
            self._stream.flush()
            has_shown = True
        if has_shown:
            self._stream.write(_ERASE)
            self._stream.flush()


class DisplayHandle(Protocol):
    """What IPython gives for something displayed, so that it can be renewed."""

    def update(self, bundle: dict[str, str], *, raw: bool) -> None: ...


class CellLines:
    """A line below the notebook's cell for each piece of work that takes long enough."""

    def __init__(self, display: Callable[..., DisplayHandle]) -> None:
        self._display = display
        self._lock = threading.Lock()
        self._lines: dict[str, _CellLine] = {}

    def __call__(self, event: Event) -> None:
        instant = str(event.figures.get("instant", ""))
        with self._lock:
            if event.name == PROGRESS and instant:
                line = self._lines.get(instant)
                if line is None:
                    line = self._lines[instant] = _CellLine(self._display)
                line.say(progress_of(event))
            elif event.name == ATTEMPT_ENDED and instant in self._lines:
                self._lines.pop(instant).end()


class _CellLine:
    def __init__(self, display: Callable[..., DisplayHandle]) -> None:
        self._display = display
        self._shown: DisplayHandle | None = None
        self._last: Progress | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(SHOWN_AFTER_SECONDS, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def say(self, progress: Progress) -> None:
        with self._lock:
            self._last = progress
            if self._shown is not None:
                self._shown.update(self._bundle(), raw=True)

    def end(self) -> None:
        """The last line stays: it says what the cell has done."""
        self._timer.cancel()

    def _begin(self) -> None:
        with self._lock:
            self._shown = self._display(self._bundle(), raw=True, display_id=True)

    def _bundle(self) -> dict[str, str]:
        return {"text/plain": str(self._last)}


def _notebook_display() -> Callable[..., DisplayHandle] | None:
    """What shows something below the cell that runs, if this process is a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):
        return None
    display: Callable[..., DisplayHandle] = ipython.display.display
    return display
