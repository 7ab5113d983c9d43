"""`repair_clustering_plan`: make a plan anew without the files that stand in its way."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.clustering.prune import Pruned, PrunedFile
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    Options,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.kept_files import NeedDelete, refuse_delete
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.texts import listed
from lakewarden.procedures.declaring.words import one_word

_DELETE = "delete"
# Hudi has two words for the same.
_CHECKED = ("validate_delete", "checkanddelete")


@procedure("repair_clustering_plan", is_mutating=True)
class RepairClusteringPlan(Call):
    """Take files out of a clustering plan that waits, such as unreadable ones.

    The plan is cancelled, and what is left of it published as a new one; the files stay in the
    table. It is a dry run unless `dry_run => false`. A row for each file.
    """

    table: TableName = None
    path: TablePath = None
    instant: Annotated[str, "The instant of the plan."]
    op: Annotated[
        str | None,
        (
            "delete: the named files (the default where files are named); validate_delete or "
            "checkanddelete: those that are not Parquet files."
        ),
    ] = None
    invalid_parquet_files: Annotated[str, "Names or addresses of files, separated by commas."] = ""
    validation_parallelism: Annotated[int, "Hudi's; there are as many threads as cores."] = 100
    need_delete: NeedDelete = False
    dry_run: DryRun = True
    backup: Annotated[
        bool, "Hudi's; Lakewarden overwrites no plan, so there is nothing to copy."
    ] = True
    allow_empty_plan: Annotated[bool, "Cancel the plan if nothing is left of it."] = False
    options: Options = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: Annotated[str, "Of the plan."]
        path: Annotated[str | None, "The address of the file; none if nothing is to go."]
        action: Annotated[
            str, "WOULD_REMOVE_FROM_PLAN, REMOVED_FROM_PLAN, NOT_FOUND_IN_PLAN or NOTHING_TO_DO"
        ]
        deleted: Annotated[bool, "Whether the file itself is gone: never."]
        reason: Annotated[str, "USER_REQUESTED, or NOT_PARQUET_FILE and what is wrong with it."]
        replaced_by: Annotated[str | None, "The instant of the new plan."]

    def run(self, caller: Caller) -> Iterable[Row]:
        refuse_delete("repair_clustering_plan", need_delete=self.need_delete)
        names = self._names()
        pruned = open_table(caller, self.table, self.path).prune_plan(
            self.instant,
            names,
            self.options,
            allow_empty=self.allow_empty_plan,
            dry_run=self.dry_run,
        )
        if not pruned.files:
            return [self._row(pruned, None)]
        return [self._row(pruned, file) for file in pruned.files]

    def _names(self) -> tuple[str, ...] | None:
        """The files that are named; None for those that are found."""
        named = listed(self.invalid_parquet_files)
        operation = one_word("op", self.op or _DELETE, (_DELETE, *_CHECKED))
        if operation in _CHECKED or (self.op is None and not named):
            return None
        if not named:
            raise InvalidRequest(
                "missing_argument",
                what="repair_clustering_plan needs invalid_parquet_files.",
                why="With op => 'delete' it names the files to remove from the plan.",
                now="Name the files, or use op => 'validate_delete' to find them.",
                argument="invalid_parquet_files",
            )
        return named

    def _row(self, pruned: Pruned, file: PrunedFile | None) -> Row:
        if file is None:
            action, reason = "NOTHING_TO_DO", "All files of the plan can be read."
        elif not file.is_planned:
            action, reason = "NOT_FOUND_IN_PLAN", "USER_REQUESTED"
        else:
            action = "WOULD_REMOVE_FROM_PLAN" if self.dry_run else "REMOVED_FROM_PLAN"
            reason = f"NOT_PARQUET_FILE: {file.broken}" if file.broken else "USER_REQUESTED"
        return self.Row(
            instant=pruned.instant,
            path=None if file is None else file.path,
            action=action,
            deleted=False,
            reason=reason,
            replaced_by=pruned.replaced_by,
        )
