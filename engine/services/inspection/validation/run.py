"""Validation: checks by name, each with what it has found."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.run.executor import Executor
from lakewarden.engine.services.inspection.validation.checks import (
    check_files,
    check_keys,
    check_ledgers,
    check_metadata_table,
    check_timeline,
)
from lakewarden.engine.services.inspection.validation.finding import (
    Check,
    CheckedTable,
    CheckVerdict,
    Finding,
    failed,
)
from lakewarden.engine.services.inspection.validation.indexes import (
    check_column_stats,
    check_record_index,
)
from lakewarden.engine.snapshot import Snapshot

CHECKS: Mapping[str, Check] = {
    "timeline": check_timeline,
    "files": check_files,
    "metadata_table": check_metadata_table,
    "record_index": check_record_index,
    "column_stats": check_column_stats,
    "ledgers": check_ledgers,
    "keys": check_keys,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """A finding, and the check that has it."""

    SHOWN: ClassVar[tuple[str, ...]] = ("check", "verdict", "object", "detail")

    check: str
    finding: Finding

    @property
    def verdict(self) -> CheckVerdict:
        return self.finding.verdict

    @property
    def object(self) -> str | None:
        return self.finding.object

    @property
    def detail(self) -> str:
        return self.finding.detail


def validate(
    state: Snapshot, executor: Executor, checks: Sequence[str] = ()
) -> Iterator[CheckResult]:
    """Run some checks, all if none are named; nothing is changed."""
    unknown = sorted(set(checks) - CHECKS.keys())
    if unknown:
        raise InvalidRequest(
            "unknown_check",
            what=f"Lakewarden has no check {unknown[0]!r}.",
            why=f"It has {', '.join(CHECKS)}.",
            now="Name some of these, or none to run all.",
            check=unknown[0],
        )
    scene = CheckedTable(state, executor)
    for name in checks or CHECKS:
        for finding in _carried_out(CHECKS[name], scene):
            yield CheckResult(check=name, finding=finding)


def _carried_out(check: Check, scene: CheckedTable) -> Iterator[Finding]:
    """What cannot be read at all is found, too."""
    try:
        yield from check(scene)
    except CorruptTable as error:
        yield failed(str(error), about=str(error.parameters.get("path", "")))
