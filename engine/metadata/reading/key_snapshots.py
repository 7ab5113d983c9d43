"""Key snapshots: what a process keeps of a record index, saved for the next process.

One file for each file group, which is put in its place as a whole. It says which base file of which
table it is of, and carries a checksum; a file that is damaged, or of another form, is no snapshot.
It is no part of the table: whatever is amiss with it costs time only.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

import numpy as np
from xxhash import xxh3_128_digest, xxh3_128_hexdigest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.kernel.events import Event, EventSink
from lakewarden.engine.metadata.reading.file_group import BaseMark
from lakewarden.engine.metadata.reading.kept_keys import Hashes, KeptKeys, SortedKeys
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage

_MAGIC = b"LWKEYS01"
_SUM_BYTES = 16
_ALIGNED = 8


@dataclass(frozen=True, slots=True)
class KeySnapshots:
    """The snapshots of one table, in a storage of their own."""

    storage: Storage = field(compare=False)
    # Where the storage is, and the table: both as addresses.
    folder: str
    table: str
    events: EventSink = field(compare=False, repr=False)

    def load(self, group: str) -> KeptKeys | None:
        """What was saved of a file group; None without a whole snapshot of this very one."""
        try:
            content = self.storage.read_if_present(self._path(group))
        except LakewardenError as error:
            self._report(error)
            return None
        return None if content is None else _decoded(content, self.table, group)

    def save(self, group: str, kept: KeptKeys) -> bool:
        """Save what the base file of a file group says; whether that has worked."""
        payload = b"".join(_encoded(kept, self.table, group))
        try:
            self.storage.put(self._path(group), payload)
        except LakewardenError as error:
            self._report(error)
            return False
        return True

    def _path(self, group: str) -> str:
        return f"{xxh3_128_hexdigest(self.table.encode())}/{group}.keys"

    def _report(self, error: LakewardenError) -> None:
        self.events(Event("key_snapshot_failed", {"folder": self.folder, "reason": error.why}))


def snapshots_in(folder: str, table: Location, events: EventSink) -> KeySnapshots | None:
    """The snapshots of a table in a folder, which is reached as the table is; none without one."""
    if not folder:
        return None
    # What is lost is read once more.
    storage = open_storage(Location(folder, {**table.options, "durable": False}))
    return KeySnapshots(storage, folder, table.uri, events)


def _encoded(kept: KeptKeys, table: str, group: str) -> Iterator[bytes]:
    created_ms = kept.mark.created_ms
    said = {
        "table": table,
        "group": group,
        "mark": asdict(kept.mark) | {"created_ms": created_ms and created_ms.hex()},
        "seed": kept.hashes.seed,
        "keys": len(kept.base),
        "homes": [[home.partition, home.file_id] for home in kept.homes],
    }
    text = json.dumps(said).encode()
    text += b" " * (-len(text) % _ALIGNED)
    parts = [_MAGIC, len(text).to_bytes(_ALIGNED, "little"), text]
    parts += [part.tobytes() for part in (kept.base.high, kept.base.low, kept.base.homes)]
    yield from parts
    yield xxh3_128_digest(b"".join(parts))


def _decoded(content: bytes, table: str, group: str) -> KeptKeys | None:
    """What a whole file says that this version has written; the checksum vouches for the rest."""
    whole, at = len(content) - _SUM_BYTES, len(_MAGIC) + _ALIGNED
    if whole < at or not content.startswith(_MAGIC):
        return None
    view = memoryview(content)
    if xxh3_128_digest(view[:whole]) != content[whole:]:
        return None
    end = at + int.from_bytes(content[len(_MAGIC) : at], "little")
    said = json.loads(content[at:end])
    if (said["table"], said["group"]) != (table, group):
        return None
    count, created_ms = said["keys"], said["mark"]["created_ms"]
    mark = BaseMark(**said["mark"] | {"created_ms": created_ms and bytes.fromhex(created_ms)})
    words = np.frombuffer(content, np.uint64, 2 * count, end)
    homes = np.frombuffer(content, np.int32, count, end + words.nbytes)
    return KeptKeys(
        mark,
        Hashes(said["seed"]),
        base=SortedKeys(words[:count], words[count:], homes),
        live=count,
        homes=tuple(FileGroupId(partition, file_id) for partition, file_id in said["homes"]),
    )
