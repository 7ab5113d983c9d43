"""`run_metadata_maintenance`: the services of the metadata table, apart from writes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.metadata_table.service import MetadataService, MetadataStep
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Options,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import listed, one_word


@procedure("run_metadata_maintenance", is_mutating=True)
class RunMetadataMaintenance(Call):
    """Clean, compact and archive the metadata table; a row for each of its services."""

    table: TableName = None
    path: TablePath = None
    services: Annotated[
        str | None, "Some of clean, compaction, log_compaction and archive; all without it."
    ] = None
    options: Options = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        service: str
        outcome: Annotated[str, "done or nothing_to_do"]
        instant: Annotated[str | None, "On the metadata table's timeline."]
        items_count: Annotated[int, "File groups compacted, files deleted, or instants archived."]
        bytes: int
        held_by_instant: Annotated[str | None, "The instant of the table that it waits for."]
        message: str

    def run(self, caller: Caller) -> Iterable[Row]:
        names = listed(self.services)
        chosen = [one_word("services", name, MetadataService) for name in names]
        table = open_table(caller, self.table, self.path)
        done = table.maintain_metadata(chosen or None, dry_run=self.dry_run, options=self.options)
        return map(_row, done.steps)


def _row(step: MetadataStep) -> RunMetadataMaintenance.Row:
    return RunMetadataMaintenance.Row(
        service=step.service.value,
        outcome="done" if step else "nothing_to_do",
        instant=step.instant,
        items_count=step.items,
        bytes=step.bytes,
        held_by_instant=None if step.blocker is None else step.blocker.instant,
        message=step.why_nothing or f"{step.items} items, {step.bytes} bytes.",
    )
