"""The audit of Java's lock in a storage: switched on and off, judged, and cleaned up."""

import json
import os
from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from tests.procedures.calls import call_one

DAY_SECONDS = 24 * 60 * 60


def logged(path: str, name: str, *events: tuple[str, int]) -> Path:
    """A file like those that Java writes: one event of a hold on each line."""
    folder = Path(path) / ".hoodie" / ".locks" / "audit"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps(
            {
                "ownerId": name,
                "transactionStartTime": events[0][1],
                "timestamp": at,
                "state": state,
                "lockExpiration": at + 10,
                "lockHeld": True,
            }
        )
        for state, at in events
    ]
    file = folder / f"{name}.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_it_is_switched_by_the_file_that_java_reads(path: str) -> None:
    assert call_one("show_audit_lock_status", path=path)["audit_enabled"] is False
    dry = call_one("set_audit_lock", path=path, state="enabled", dry_run=True)
    assert dry["message"] == "Lock audit logging would be enabled"
    assert call_one("show_audit_lock_status", path=path)["audit_enabled"] is False
    call_one("set_audit_lock", path=path, state="ENABLED")
    status = call_one("show_audit_lock_status", path=path)
    assert status["audit_enabled"] is True
    switch = Path(str(status["config_path"]).removeprefix("file://"))
    assert json.loads(switch.read_text()) == {"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": True}
    call_one("set_audit_lock", path=path, state="disabled")
    assert call_one("show_audit_lock_status", path=path)["audit_enabled"] is False
    switch.write_text("{")
    assert call_one("show_audit_lock_status", path=path)["audit_enabled"] is False
    with pytest.raises(InvalidRequest, match="state"):
        call_one("set_audit_lock", path=path, state="on")


def test_holds_that_overlap_or_have_no_end_are_told(path: str) -> None:
    def verdict() -> tuple[object, ...]:
        return tuple(call_one("validate_audit_lock", path=path).values())[1:4]

    assert verdict() == ("PASSED", 0, 0)
    logged(path, "1_a", ("START", 100), ("RENEW", 150), ("END", 200))
    logged(path, "2_b", ("START", 200), ("END", 300))
    assert verdict() == ("PASSED", 2, 0)
    logged(path, "3_c", ("START", 400))
    assert verdict() == ("WARNING", 3, 1)
    logged(path, "4_d", ("START", 405), ("END", 500))
    assert verdict() == ("FAILED", 4, 2)
    found = call_one("validate_audit_lock", path=path)
    assert str(found["details"]).startswith("3_c.jsonl overlaps with 4_d.jsonl")
    logged(path, "5_e", ("START", 600), ("END", 700)).write_text('{"state": "START"}\n')
    assert verdict() == ("FAILED", 4, 3)


def test_old_logs_go(path: str) -> None:
    old, new = (logged(path, name, ("START", 1), ("END", 2)) for name in ("old", "new"))
    at = new.stat().st_mtime - 8 * DAY_SECONDS
    os.utime(old, (at, at))
    dry = call_one("cleanup_audit_lock", path=path, dry_run=True)
    assert (dry["files_cleaned"], old.exists()) == (1, True)
    assert call_one("cleanup_audit_lock", path=path, age_days=9)["files_cleaned"] == 0
    assert call_one("cleanup_audit_lock", path=path)["files_cleaned"] == 1
    assert (old.exists(), new.exists()) == (False, True)
    with pytest.raises(InvalidRequest, match="age_days"):
        call_one("cleanup_audit_lock", path=path, age_days=0)
