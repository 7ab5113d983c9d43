"""`upgrade_table` and `downgrade_table`: the version of a table's format."""

from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.texts import one_word

# As Hudi spells them.
_WORDS = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
ToVersion = Annotated[str, "The version, as a word or a number: NINE or 9."]


@dataclass(frozen=True, kw_only=True)
class VersionCall(Call, ABC):
    """A change of version, while nothing is under way on the table."""

    table: TableName = None
    to_version: ToVersion
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        result: Annotated[bool, "Whether the table has that version."]

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, self.table, self.path)
        changed = table.change_version(_number(self.to_version), dry_run=self.dry_run)
        yield self.Row(result=not (self.dry_run and changed.is_changed))


def _number(text: str) -> int:
    if text.strip().isdecimal() and int(text) < len(_WORDS):
        return int(text)
    return _WORDS.index(one_word("to_version", text, _WORDS))


@procedure("upgrade_table", is_mutating=True)
class UpgradeTable(VersionCall):
    """Give a table of version 6 or 8 a newer one; the timeline of version 6 moves."""


@procedure("downgrade_table", is_mutating=True)
class DowngradeTable(VersionCall):
    """Give a table an older version, 8 or 6; indexes that it has in another format go."""
