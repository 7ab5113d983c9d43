"""The audit of storage locks: what Java's lock in a storage logs of each hold of it.

Writers of Java with `StorageBasedLockProvider` log where the table says so; writers here keep a
ledger instead. A file is one hold, a line of JSON one event of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.formats.json_text import format_json, parse_json
from lakewarden.engine.kernel.errors import CorruptTable, corrupt
from lakewarden.engine.storage.port import Entry, Storage

AUDIT_FOLDER = ".hoodie/.locks/audit"
SWITCH_PATH = ".hoodie/.locks/audit_enabled.json"
_SWITCH = "STORAGE_LOCK_AUDIT_SERVICE_ENABLED"
_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One hold of the lock, as its file tells it; without an end it was cut off."""

    file: str
    began_ms: int
    ended_ms: int | None
    expires_ms: int | None

    @property
    def until_ms(self) -> int:
        known = (one for one in (self.ended_ms, self.expires_ms) if one is not None)
        return next(known, self.began_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditVerdict:
    """What is wrong with the holds that were logged."""

    holds: int
    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def set_audit(storage: Storage, *, enabled: bool) -> None:
    """Say whether Java's writers log the holds of their lock."""
    storage.put(SWITCH_PATH, format_json({_SWITCH: enabled}))


def is_audited(storage: Storage) -> bool:
    """Whether they do; a file that is damaged switches nothing on."""
    content = storage.read_if_present(SWITCH_PATH)
    try:
        said = parse_json(content, SWITCH_PATH) if content else None
    except CorruptTable:
        return False
    return isinstance(said, dict) and said.get(_SWITCH) is True


def old_audits(storage: Storage, now_ms: int, age_days: int) -> tuple[Entry, ...]:
    """The logs of holds that are so many days old."""
    end = now_ms - age_days * _DAY_MS
    return tuple(one for one in _logs(storage) if one.modified_ms < end)


def audit_verdict(storage: Storage) -> AuditVerdict:
    """Whether no two holds overlap, and each has ended; a file that is damaged is an error."""
    errors, holds = [], []
    for log in _logs(storage):
        try:
            holds.append(_hold(log.name, storage.read(log.path), log.path))
        except CorruptTable:
            errors.append(f"{log.name} is damaged")
    holds.sort(key=lambda one: (one.began_ms, one.file))
    warnings = [f"{one.file} has no end: its writer died" for one in holds if one.ended_ms is None]
    errors += [f"{one.file} overlaps with {other.file}" for one, other in _overlaps(holds)]
    return AuditVerdict(holds=len(holds), errors=tuple(errors), warnings=tuple(warnings))


def _overlaps(holds: Sequence[Hold]) -> Iterator[tuple[Hold, Hold]]:
    for place, one in enumerate(holds):
        for other in holds[place + 1 :]:
            if other.began_ms >= one.until_ms:
                break
            yield one, other


def _logs(storage: Storage) -> Iterator[Entry]:
    return (one for one in storage.list(AUDIT_FOLDER).files if one.name.endswith(".jsonl"))


def _hold(name: str, content: bytes, path: str) -> Hold:
    """What a log tells of its hold."""
    events = [parse_json(line, path) for line in content.splitlines() if line.strip()]
    if not events or not all(isinstance(one, dict) for one in events):
        raise corrupt(path, None, "It has no events of a lock.")
    named = [one for one in events if isinstance(one, dict)]
    began = _times(named, "START", path) or [_number(named[0], "transactionStartTime", path)]
    ended = _times(named, "END", path)
    last = named[-1]
    return Hold(
        file=name,
        began_ms=began[0],
        ended_ms=ended[-1] if ended else None,
        expires_ms=_number(last, "lockExpiration", path) if "lockExpiration" in last else None,
    )


def _times(events: Sequence[Mapping[str, object]], state: str, path: str) -> list[int]:
    return [_number(one, "timestamp", path) for one in events if one.get("state") == state]


def _number(event: Mapping[str, object], name: str, path: str) -> int:
    value = event.get(name)
    if not isinstance(value, int):
        raise corrupt(path, None, f"An event has no number {name}.")
    return value
