"""The storage lock: the object that Java's StorageBasedLockProvider keeps by conditional writes.

The object says who has the lock and until when; it is replaced only in the very state it was read
in, so of two who find it free one gets it. Java reads its three fields and no others, so our note
is the text of the owner.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lakewarden.engine.formats.instant_metadata.binding import value_of
from lakewarden.engine.formats.json_text import format_json, parse_json
from lakewarden.engine.kernel.errors import Unavailable
from lakewarden.engine.locks.providers.port import (
    ENDED_OWNERS,
    Acquired,
    Acquiring,
    HeldBy,
    Holder,
    LockNote,
    Unclear,
    decode_note,
    encode_note,
)
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.port import Creation, Lost, Storage, Unknown, Versioned, Won

LOCK_PATH = ".hoodie/.locks/table_lock.json"
# How far the clocks of two writers may be apart, as Java has it.
DRIFT_MS = 500


@dataclass(frozen=True, slots=True)
class LockValidity:
    """How long a lock is valid without renewal, and how often it is renewed."""

    valid_seconds: float = 300.0
    renew_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class _State:
    """What the object says."""

    expired: bool
    valid_until: int
    owner: str

    @property
    def note(self) -> LockNote | None:
        return decode_note(self.owner.encode(), LOCK_PATH)

    @property
    def holder(self) -> Holder:
        note = self.note
        return note.holder if note else Holder(f"owner {self.owner}")


class StorageLock:
    """The lock object of one table, as one owner sees it."""

    def __init__(self, storage: Storage, validity: LockValidity, ports: Ports) -> None:
        self._storage = storage
        self._validity = validity
        self._ports = ports
        note = LockNote.of(ports.ids.fresh(), ports.processes.mine(), ports.clock.now_ms())
        self._id = note.owner
        self._owner = encode_note(note).decode()
        # As this owner has read or made it last, and has not changed it since.
        self._seen: Versioned | None = None

    @property
    def name(self) -> str:
        return f"storage lock {self._storage.uri(LOCK_PATH)}"

    @property
    def renew_every_seconds(self) -> float:
        return self._validity.renew_seconds

    def try_acquire(self) -> Acquiring:
        ENDED_OWNERS.discard(self._id)
        found = self._storage.read_versioned(LOCK_PATH)
        wanted = self._wanted()
        if found is None:
            return self._judged(self._storage.create_exclusive(LOCK_PATH, _encoded(wanted)))
        state = _decoded(found.content)
        # A request that got no answer has reached the storage after all.
        if state.owner == self._owner and not state.expired:
            return Acquired()
        if self._is_taken(state):
            return HeldBy(state.holder, self._remedy(state))
        content = _encoded(wanted)
        taken = self._storage.replace_if(LOCK_PATH, content, found.version)
        if isinstance(taken, Won) and taken.version is not None:
            self._seen = Versioned(content, taken.version)
        return self._judged(taken)

    def renew(self) -> bool:
        return self._replace(lambda _: self._wanted())

    def is_held(self) -> bool:
        self._seen = self._storage.read_versioned(LOCK_PATH)
        state = self._own(self._seen)
        return state is not None and self._ports.clock.now_ms() <= state.valid_until - DRIFT_MS

    def release(self) -> None:
        # From here on this hold is over, whatever the object says, and whatever arrives late.
        ENDED_OWNERS.add(self._id)
        if self._replace(lambda mine: replace(mine, expired=True)):
            ENDED_OWNERS.discard(self._id)

    def holder(self) -> Holder | None:
        state = self._state()
        if state is None or not self._is_taken(state):
            return None
        return replace(state.holder, expires_ms=state.valid_until + DRIFT_MS)

    def _wanted(self) -> _State:
        valid_until = self._ports.clock.now_ms() + round(self._validity.valid_seconds * 1000)
        return _State(expired=False, valid_until=valid_until, owner=self._owner)

    def _state(self) -> _State | None:
        content = self._storage.read_if_present(LOCK_PATH)
        return None if content is None else _decoded(content)

    def _is_taken(self, state: _State) -> bool:
        if state.expired or self._ports.clock.now_ms() > state.valid_until + DRIFT_MS:
            return False
        note = state.note
        if note is None:
            return True
        return not (ENDED_OWNERS.has(note.owner) or self._ports.processes.is_gone(note.process))

    def _replace(self, following: Callable[[_State], _State]) -> bool:
        """Put a state in the place of ours; False when the lock is not ours any more.

        It is still ours after its time has run out, as long as no other process has taken it.
        """
        seen, self._seen = self._seen, None
        known = self._own(seen)
        if seen is not None and known is not None:
            # One request less; where it is outdated the lock is read as it is now.
            changed = self._storage.replace_if(LOCK_PATH, _encoded(following(known)), seen.version)
            if isinstance(changed, Won):
                return True
        found = self._storage.read_versioned(LOCK_PATH)
        state = self._own(found)
        if found is None or state is None:
            return False
        wanted = _encoded(following(state))
        match self._storage.replace_if(LOCK_PATH, wanted, found.version):
            case Won():
                return True
            case Lost():
                return False
            case Unknown(cause):
                raise Unavailable(
                    "lock_unavailable",
                    what=f"It is not known whether the {self.name} was changed.",
                    why=cause,
                    now="Try again: the next attempt reads the lock.",
                    lock=self.name,
                )

    def _own(self, found: Versioned | None) -> _State | None:
        """The state that was read, if it is this owner's and has not been given back."""
        state = None if found is None else _decoded(found.content)
        return state if state and state.owner == self._owner and not state.expired else None

    def _judged(self, answer: Creation) -> Acquiring:
        match answer:
            case Won():
                return Acquired()
            case Lost(content):
                state = _decoded(content)
                return HeldBy(state.holder, self._remedy(state))
            case Unknown(cause):
                return Unclear(cause)

    def _remedy(self, state: _State) -> str:
        left = (state.valid_until + DRIFT_MS - self._ports.clock.now_ms()) / 1000
        return f"It expires in {max(left, 0):.1f} s unless its owner renews it."


def _encoded(state: _State) -> bytes:
    return format_json(
        {"expired": state.expired, "validUntil": state.valid_until, "owner": state.owner}
    )


def _decoded(content: bytes) -> _State:
    return value_of(_State, parse_json(content, LOCK_PATH), LOCK_PATH)
