"""Log bytes laid out by hand, field by field, and the log files of golden tables."""

import struct
import zipfile
from collections.abc import Iterator

from tests.golden_tables import archive_of

# The whole file by which Java begins a metadata file group.
FIRST_DELETE_BLOCK = bytes.fromhex(
    "234855444923" "0000000000000042" "00000001" "00000001" "00000001" "00000000" "00000011"
) + b"00000000000000001" + bytes.fromhex(
    "0000000000000009" "00000003" "00000001" "00" "00000000" "0000000000000048"
)  # fmt: skip


def header_map(headers: dict[int, str]) -> bytes:
    encoded = [(key, text.encode()) for key, text in headers.items()]
    entries = [struct.pack(">ii", key, len(text)) + text for key, text in encoded]
    return struct.pack(">i", len(headers)) + b"".join(entries)


def frame(kind: int, headers: dict[int, str], content: bytes, version: int = 1) -> bytes:
    inside = struct.pack(">ii", version, kind) + header_map(headers)
    inside += struct.pack(">q", len(content)) + content + header_map({})
    length = len(inside) + 8
    return b"#HUDI#" + struct.pack(">q", length) + inside + struct.pack(">q", length + 6)


def golden_logs(table: str) -> Iterator[tuple[str, bytes]]:
    """Every log file of a golden table, metadata table included, with its path."""
    with zipfile.ZipFile(archive_of(table)) as packed:
        for path in sorted(packed.namelist()):
            name = path.rsplit("/", 1)[-1]
            if name.startswith(".") and not name.startswith("._") and ".log." in name:
                yield path, packed.read(path)
