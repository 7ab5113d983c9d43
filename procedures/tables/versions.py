"""`upgrade_table` and `downgrade_table`: the version of a table's format."""

from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.creation import CREATED_VERSION
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    DryRun,
    TableName,
    TablePath,
    procedure,
)
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.texts import one_word

# As Hudi spells them.
_WORDS = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
ToVersion = Annotated[str, "The version, as a word or a number: NINE or 9."]


@dataclass(frozen=True, kw_only=True)
class VersionCall(Call, ABC):
    """A change of version; only the one that a table has already can be asked for."""

    table: TableName = None
    to_version: ToVersion
    path: TablePath = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        result: Annotated[bool, "Whether the table has that version."]

    def run(self, caller: Caller) -> Iterable[Row]:
        config = open_table(caller, self.table, self.path).config
        wanted = _number(self.to_version)
        if wanted != config.version:
            raise InvalidRequest(
                "unsupported_version_change",
                what=f"The table stays at version {config.version}.",
                why=f"Lakewarden writes version {CREATED_VERSION} and changes no table's version.",
                now=f"Change it with Hudi, or CREATE TABLE AS SELECT for {CREATED_VERSION}.",
                version=str(wanted),
            )
        yield self.Row(result=True)


def _number(text: str) -> int:
    if text.strip().isdecimal() and int(text) < len(_WORDS):
        return int(text)
    return _WORDS.index(one_word("to_version", text, _WORDS))


@procedure("upgrade_table", is_mutating=True)
class UpgradeTable(VersionCall):
    """Whether a table has a version, or why it does not get it."""


@procedure("downgrade_table", is_mutating=True)
class DowngradeTable(VersionCall):
    """Whether a table has a version, or why it does not go back to it."""
