"""`set_audit_lock`, `show_audit_lock_status`, `validate_audit_lock`, `cleanup_audit_lock`: what
Java's lock in a storage logs of itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.kernel.clock import SystemClock
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.lock_audit import (
    AUDIT_FOLDER,
    SWITCH_PATH,
    audit_verdict,
    is_audited,
    old_audits,
    set_audit,
)
from lakewarden.engine.storage.port import Storage
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import one_word

_STATES = ("enabled", "disabled")


@procedure("set_audit_lock", is_mutating=True)
class SetAuditLock(Call):
    """Say whether Java's writers log each hold of their lock in the storage.

    It is for those with `StorageBasedLockProvider`. Writers here keep a ledger: `show_ledger`.
    """

    table: TableName = None
    path: TablePath = None
    state: Annotated[str, "enabled or disabled"]
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        table: str
        audit_state: str
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        storage = _storage(caller, self.table, self.path)
        state = one_word("state", self.state, _STATES)
        if not self.dry_run:
            set_audit(storage, enabled=state == _STATES[0])
        message = f"Lock audit logging {'would be' if self.dry_run else 'is'} {state}"
        yield self.Row(table=self.table or self.path or "", audit_state=state, message=message)


@procedure("show_audit_lock_status")
class ShowAuditLockStatus(Call):
    """Whether Java's writers log each hold of their lock in the storage, and where."""

    table: TableName = None
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        table: str
        audit_enabled: bool
        config_path: str
        audit_folder_path: str

    def run(self, caller: Caller) -> Iterable[Row]:
        storage = _storage(caller, self.table, self.path)
        yield self.Row(
            table=self.table or self.path or "",
            audit_enabled=is_audited(storage),
            config_path=storage.uri(SWITCH_PATH),
            audit_folder_path=storage.uri(AUDIT_FOLDER),
        )


@procedure("validate_audit_lock")
class ValidateAuditLock(Call):
    """Whether two holds of the lock that were logged overlap, and which have no end."""

    table: TableName = None
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        table: str
        validation_result: Annotated[str, "PASSED, WARNING or FAILED"]
        transactions_validated: Annotated[int, "Holds of the lock."]
        issues_found: int
        details: str

    def run(self, caller: Caller) -> Iterable[Row]:
        found = audit_verdict(_storage(caller, self.table, self.path))
        issues = (*found.errors, *found.warnings)
        worst = "WARNING" if found.warnings else "PASSED"
        yield self.Row(
            table=self.table or self.path or "",
            validation_result="FAILED" if found.errors else worst,
            transactions_validated=found.holds,
            issues_found=len(issues),
            details="; ".join(issues) or "Each hold ended before the next one began",
        )


@procedure("cleanup_audit_lock", is_mutating=True)
class CleanupAuditLock(Call):
    """Delete the logs of holds that are older than some days."""

    table: TableName = None
    path: TablePath = None
    dry_run: DryRun = False
    age_days: Annotated[int, "How old they are at least."] = 7

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        table: str
        files_cleaned: int
        dry_run: bool
        age_days: int
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        if self.age_days <= 0:
            raise InvalidRequest(
                "bad_age_days",
                what=f"age_days cannot be {self.age_days}.",
                why="It is a number of days, at least 1.",
                now="Pass age_days => 7, for example.",
            )
        storage = _storage(caller, self.table, self.path)
        found = old_audits(storage, SystemClock().now_ms(), self.age_days)
        if not self.dry_run:
            storage.delete_all([one.path for one in found])
        yield self.Row(
            table=self.table or self.path or "",
            files_cleaned=len(found),
            dry_run=self.dry_run,
            age_days=self.age_days,
            message=f"{len(found)} files {'would go' if self.dry_run else 'are gone'}",
        )


def _storage(caller: Caller, table: str | None, path: str | None) -> Storage:
    """The storage of a table that is there."""
    return open_table(caller, table, path).state().storage
