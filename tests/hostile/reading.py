"""Reading damaged files: as the engine reads each kind of them."""

import base64
from collections.abc import Callable, Mapping

from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.bloom import parse_bloom
from lakewarden.engine.formats.hfile import HFile
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.log.block import BlockKind
from lakewarden.engine.formats.log.deletes import deletes
from lakewarden.engine.formats.log.reader import read_blocks, records
from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.formats.range_source import BufferSource
from lakewarden.engine.read.merge.base_file import BaseReader
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.timeline.ledger.entries import decode_entry


def read_log(content: bytes) -> None:
    for block in read_blocks(content, "a log"):
        match block.kind:
            case BlockKind.CORRUPT:
                raise block.corrupt(block.reason)
            case BlockKind.DELETE:
                deletes(block)
            case BlockKind.HFILE:
                read_hfile(bytes(block.content))
            case BlockKind.AVRO | BlockKind.PARQUET:
                records(block)


def read_hfile(content: bytes) -> None:
    file = HFile(BufferSource(content), "an HFile")
    file.lookup([b"key-00001", b"key-00200"])
    file.lookup_prefixes([b"key-0000"])
    file.entries()


def read_parquet(content: bytes) -> None:
    storage = fresh_memory_storage()
    storage.put("a.parquet", content)
    reader = BaseReader(storage)
    reader.metadata("a.parquet")
    for _ in reader.tables("a.parquet", ["id", "v"], batch_rows=1 << 16, small_buffers=True):
        pass


READERS: Mapping[str, Callable[[bytes], object]] = {
    "commit": lambda content: commit.decode(content, "a commit"),
    "commit_json": lambda content: commit.decode(content, "a commit"),
    "schema": lambda content: parse_schema(content.decode(), "a schema"),
    "hfile": read_hfile,
    "log": read_log,
    "parquet": read_parquet,
    "properties": lambda content: parse_properties(content, "some properties"),
    "ledger": lambda content: decode_entry(content, "an entry"),
    "bloom": lambda content: parse_bloom(base64.b64encode(content), "DYNAMIC_V0", "a filter"),
}
