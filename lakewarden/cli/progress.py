"""Progress: on a terminal, how far long work has come, on one line that goes when it is done."""

import sys
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self, TextIO

from lakewarden.cli.call_arguments import CallCommand
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.services.inspection.state.plans import PendingPlan
from lakewarden.table import Table

WIDTH = 30
INTERVAL_SECONDS = 1.0
_ERASE = "\r\x1b[K"


class _Plan(Protocol):
    @property
    def service(self) -> str: ...
    @property
    def instant(self) -> str: ...
    @property
    def step(self) -> str | None: ...
    @property
    def done_ratio(self) -> float | None: ...


def bar(plans: Sequence[_Plan]) -> str:
    """One line about the plan that is running; empty where none is.

    >>> from types import SimpleNamespace as Seen
    >>> bar([Seen(service="compaction", instant="20261118101500123", step="merge", done_ratio=0.5)])
    'compaction 20261118101500123 [###############               ]  50 % merge'
    """
    for plan in plans:
        if plan.done_ratio is not None:
            filled = "#" * round(plan.done_ratio * WIDTH)
            head = f"{plan.service} {plan.instant} [{filled:<{WIDTH}}]"
            return f"{head} {plan.done_ratio * 100:3.0f} % {plan.step or ''}".rstrip()
    return ""


class Progress:
    """Looks at the plans of a table now and then, and shows how far they are."""

    def __init__(
        self,
        look: Callable[[], Sequence[PendingPlan]] | None,
        stream: TextIO,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._look = look
        self._stream = stream
        self._interval_seconds = interval_seconds
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._show, name="lakewarden-progress", daemon=True)

    @classmethod
    def of(cls, command: object) -> Self:
        """The progress of a request; nothing is shown if it is off, or without a terminal."""
        return cls(_look_of(command) if sys.stderr.isatty() else None, sys.stderr)

    def __enter__(self) -> Self:
        if self._look is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _show(self) -> None:
        assert self._look is not None
        has_shown = False
        while not self._is_over.wait(self._interval_seconds):
            try:
                line = bar(self._look())
            except LakewardenError:
                # The work itself says what is wrong; a look that fails is only a line less.
                break
            if line or has_shown:
                self._stream.write(f"{_ERASE}{line}")
                self._stream.flush()
                has_shown = True
        if has_shown:
            self._stream.write(_ERASE)
            self._stream.flush()


def _look_of(command: object) -> Callable[[], Sequence[PendingPlan]] | None:
    if not isinstance(command, CallCommand) or not command.procedure.is_mutating:
        return None
    path = command.named.get("path") or command.named.get("table")
    if not path or command.named.get("dry_run") == "true":
        return None
    return lambda: Table(str(path), command.storage_options).plans()
