"""Base files of the metadata table: HFiles that initialisation and compaction make of entries."""

from lakewarden.engine.formats.bloom import build_bloom
from lakewarden.engine.formats.hfile import write_hfile
from lakewarden.engine.metadata.encoding.entries import Entries
from lakewarden.engine.metadata.encoding.record_schema import RECORD_SCHEMA_TEXT

# What Java gives to a filter here; one of more keys than the last number tells next to nothing.
_FILTER_ENTRIES = 10_000
_FILTER_ENTRIES_MAX = 100_000


def base_name(file_id: str, instant: str, token: str) -> str:
    return f"{file_id}_{token}_{instant}.hfile"


def base_file(entries: Entries, created_ms: int) -> bytes:
    """An HFile of sorted entries; it may have none."""
    key_filter = None
    if len(entries.keys) <= _FILTER_ENTRIES_MAX:
        key_filter = build_bloom(
            entries.keys, entries=_FILTER_ENTRIES, entries_max=_FILTER_ENTRIES_MAX
        )
    return write_hfile(
        entries.keys,
        entries.own_values(),
        schema_text=RECORD_SCHEMA_TEXT,
        created_ms=created_ms,
        key_filter=key_filter,
    )
