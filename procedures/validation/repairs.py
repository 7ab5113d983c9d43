"""`repair_add_partition_meta`, `repair_migrate_partition_meta`, `repair_overwrite_hoodie_props` and
`repair_corrupted_clean_files`: put right what stands beside the data."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)


@procedure("repair_add_partition_meta", is_mutating=True)
class RepairAddPartitionMeta(Call):
    """Put Hudi's file into partitions that have lost it; a row for each partition.

    Without it, a listing of the table does not find the partition. It only tells what it would do
    unless `dry_run => false`.
    """

    table: TableName = None
    dry_run: DryRun = True
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition_path: str
        metadata_is_present: Annotated[str, "Yes or No"]
        action: Annotated[str, "None, or Repaired"]

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        for one in table.repair_partition_files(dry_run=self.dry_run):
            is_there = one.has_text or one.has_base_format
            yield self.Row(
                partition_path=one.partition,
                metadata_is_present="Yes" if is_there else "No",
                action="None" if is_there or self.dry_run else "Repaired",
            )


@procedure("repair_migrate_partition_meta", is_mutating=True)
class RepairMigratePartitionMeta(Call):
    """Let partitions be marked by files of the base format instead of texts; a row for each.

    It only tells what it would do unless `dry_run => false`.
    """

    table: TableName = None
    dry_run: DryRun = True
    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition_path: str
        text_metafile_present: Annotated[str, "true or false, before the call."]
        base_metafile_present: Annotated[str, "true or false, before the call."]
        action: Annotated[str, "MIGRATED; of a dry run NONE, or MIGRATE"]

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        for one in table.repair_partition_files(migrates=True, dry_run=self.dry_run):
            due = "MIGRATE" if one.has_text else "NONE"
            yield self.Row(
                partition_path=one.partition,
                text_metafile_present=str(one.has_text).lower(),
                base_metafile_present=str(one.has_base_format).lower(),
                action=due if self.dry_run else "MIGRATED",
            )


@procedure("repair_overwrite_hoodie_props", is_mutating=True)
class RepairOverwriteHoodieProps(Call):
    """Replace the table's properties by those of a file; a row for each property.

    Properties that describe the rows, files or indexes must be the same.
    """

    table: TableName = None
    new_props_file_path: Annotated[str, "A file of properties, like hoodie.properties."]
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        property: str
        old_value: Annotated[str, "null where there was none."]
        new_value: Annotated[str, "null where there is none any more."]

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        caller.permissions.check_path(self.new_props_file_path)
        folder, _, name = self.new_props_file_path.rpartition("/")
        place = caller.place_at(folder or ".")
        content = open_storage(Location(place.path, place.storage_options)).read(name)
        given = parse_properties(content, self.new_props_file_path)
        for one in table.repair_properties(given, dry_run=self.dry_run):
            yield self.Row(
                property=one.name,
                old_value="null" if one.old is None else one.old,
                new_value="null" if one.new is None else one.new,
            )


@procedure("repair_corrupted_clean_files", is_mutating=True)
class RepairCorruptedCleanFiles(Call):
    """Remove pending cleans whose plans are damaged, which no clean could go on with."""

    table: TableName = None
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        result: Annotated[bool, "Whether none is left."]
        removed: Annotated[str, "The instants that went, separated by commas."]

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        found = table.repair_cleans(dry_run=self.dry_run)
        is_done = all(goes for _, goes in found) and not (self.dry_run and found)
        yield self.Row(result=is_done, removed=",".join(one for one, goes in found if goes))
