"""JSON files: UTF-8 texts that hold one value."""

import json

from lakewarden.engine.kernel.errors import corrupt


def parse_json(payload: bytes, path: str) -> object:
    """The value a file holds; every text in it is proper Unicode."""
    try:
        text = payload.decode()
        value: object = json.loads(text)
        if "\\u" in text:
            # An escape for half a character gives a text that no UTF-8 file could hold again.
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise corrupt(path, _offset(error), f"It is not proper JSON: {error}.") from error
    return value


def format_json(value: object) -> bytes:
    """A file that holds a value, on one line."""
    return json.dumps(value, ensure_ascii=False).encode()


def format_pretty(value: object) -> bytes:
    """A file that holds a value, one line for each of its items, as Java writes it."""
    return json.dumps(value, ensure_ascii=False, indent=2, separators=(",", " : ")).encode()


def is_whole_object(payload: bytes) -> bool:
    """Whether the file of an object that was made so was written to its end."""
    return payload[:1] == b"{" and payload.endswith((b"\n}", b"{}"))


def _offset(error: Exception) -> int | None:
    match error:
        case json.JSONDecodeError(doc=text, pos=position):
            return len(text[:position].encode())
        case UnicodeDecodeError(start=start):
            return start
        case _:
            return None
