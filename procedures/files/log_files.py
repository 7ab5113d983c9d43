"""`show_logfile_metadata` and `show_logfile_records`: the blocks and the rows of log files."""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.services.inspection.files.logs import (
    blocks_of,
    matching_logs,
    merged_records,
    records_of,
)
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)

# The names that Hudi has for them.
BLOCK_TYPES: Mapping[BlockKind, str] = {
    BlockKind.COMMAND: "COMMAND_BLOCK",
    BlockKind.DELETE: "DELETE_BLOCK",
    BlockKind.CORRUPT: "CORRUPT_BLOCK",
    BlockKind.AVRO: "AVRO_DATA_BLOCK",
    BlockKind.HFILE: "HFILE_DATA_BLOCK",
    BlockKind.PARQUET: "PARQUET_DATA_BLOCK",
    BlockKind.CDC: "CDC_DATA_BLOCK",
}


@procedure("show_logfile_metadata")
class ShowLogfileMetadata(Call):
    """The blocks of log files, in the order they are read; a row each, for corrupt ones too."""

    table: TableName = None
    path: TablePath = None
    log_file_path_pattern: Annotated[
        str, "Which logs, as a shell's pattern below the table: 'city=Oslo/*.log.*'."
    ]
    limit: Limit = 10
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant_time: Annotated[str, "Of the write; corrupt_block where the block is unreadable."]
        record_count: int
        block_type: str
        header_metadata: Annotated[str, "As a JSON object; of a corrupt block, what is wrong."]
        footer_metadata: Annotated[str, "As a JSON object; always empty in practice."]
        log_file: Annotated[str, "Its path below the table."]
        block_offset: Annotated[int, "Where in the file it begins."]
        block_size_bytes: int

    def run(self, caller: Caller) -> Iterable[Row]:
        storage = open_table(caller, self.table, self.path).state().storage
        for found in blocks_of(storage, matching_logs(storage, self.log_file_path_pattern)):
            yield self.Row(
                instant_time=found.block.instant or "corrupt_block",
                record_count=found.record_count,
                block_type=BLOCK_TYPES[found.block.kind],
                header_metadata=_headers(found.block),
                footer_metadata="{}",
                log_file=found.path,
                block_offset=found.block.offset,
                block_size_bytes=found.block.size_bytes,
            )


def _headers(block: Block) -> str:
    headers = {header.name: value for header, value in block.headers.items()}
    return json.dumps(headers | ({"reason": block.reason} if block.reason else {}))


@procedure("show_logfile_records")
class ShowLogfileRecords(Call):
    """The records in log files, in the order they are read; a row each."""

    table: TableName = None
    path: TablePath = None
    log_file_path_pattern: Annotated[
        str, "Which logs, as a shell's pattern below the table: 'city=Oslo/*.log.*'."
    ]
    merge: Annotated[bool, "Merge the logs of a file group first."] = False
    limit: Limit = 10
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        records: Annotated[str, "One record as a JSON object; bytes are in base64."]

    def run(self, caller: Caller) -> Iterable[Row]:
        state = open_table(caller, self.table, self.path).state()
        logs = matching_logs(state.storage, self.log_file_path_pattern)
        tables = merged_records(state, logs) if self.merge else records_of(state.storage, logs)
        for table in tables:
            for record in table.to_pylist():
                yield self.Row(records=json.dumps(record, default=_plain, ensure_ascii=False))


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value)
