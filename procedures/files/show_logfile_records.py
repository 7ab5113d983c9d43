"""`show_logfile_records`: the records in log files."""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.inspection.files.logs import (
    matching_logs,
    merged_records,
    records_of,
)
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table


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
