"""Results: what came of executing plans."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.services.planning.selection import Refusal
from lakewarden.engine.transaction.state.service import Service


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Execution(Shown):
    """One plan that has completed; `errors` say what is left to be done all the same."""

    instant: str
    service: Service
    # When it completed; someone else may have done that before.
    completed: str
    was_completed_before: bool = False
    rows_written: int = 0
    files: int = 0
    file_groups: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    errors: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.was_completed_before:
            return f"{self.service} {self.instant}: was already complete"
        return (
            f"{self.service} {self.instant}: {self.rows_written} rows in {self.files} files,"
            f" {self.bytes_written} bytes, {sum(self.seconds.values()):.2f} s"
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """A plan that could not be executed, and why."""

    instant: str
    cause: Exception


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result(Shown):
    """The result of a run: plans executed, plans that failed, or why there was nothing."""

    service: Service
    executions: tuple[Execution, ...] = ()
    failures: tuple[Failure, ...] = ()
    refusal: Refusal | None = None
    # Plans that were left for another time, as a limit or the deadline was reached.
    left: tuple[str, ...] = ()
    # Plans that a dry run would have started with.
    would_run: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [str(one) for one in self.executions]
        lines += [f"{self.service} {instant}: would run" for instant in self.would_run]
        lines += [f"{self.service} {one.instant} failed: {one.cause}" for one in self.failures]
        lines += [f"{self.service} {instant}: left for later" for instant in self.left]
        return "\n".join(lines or [str(self.refusal)])

    @property
    def instants(self) -> tuple[str, ...]:
        return tuple(one.instant for one in self.executions)

    @property
    def rows_written(self) -> int:
        return sum(one.rows_written for one in self.executions)

    @property
    def files(self) -> int:
        return sum(one.files for one in self.executions)

    @property
    def bytes_written(self) -> int:
        return sum(one.bytes_written for one in self.executions)
