"""Written schemas: as much of an Avro schema as it takes to read bytes that are there."""

import json
from functools import lru_cache

# Documents, what stands for a missing field, and how Java holds texts: the reader's own choices.
_READERS_CHOICE = frozenset({"doc", "default", "avro.java.string"})


@lru_cache(maxsize=64)
def written_schema(text: str) -> str:
    """The same schema without what says nothing of bytes; a small file is mostly its schema."""
    return json.dumps(_without(json.loads(text)), separators=(",", ":"))


def _without(part: object) -> object:
    if isinstance(part, list):
        return [_without(one) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {name: _without(one) for name, one in part.items() if name not in _READERS_CHOICE}
    return "string" if kept == {"type": "string"} else kept
