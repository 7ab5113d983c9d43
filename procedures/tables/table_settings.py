"""`show_config` and `show_table_properties`: what is set for a table, and by which source."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.options import (
    ALL_SETTINGS,
    EffectiveSetting,
    effective_settings,
    setting_text,
    understood,
)
from lakewarden.environment import environment_settings
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    Options,
    TableName,
    TablePath,
    procedure,
)


@procedure("show_config")
class ShowConfig(Call):
    """The settings that hold for a table, or for the session without one; a row each.

    An argument wins over the session, that over the table, that over a variable of the environment
    such as HOODIE_PARQUET_SMALL_FILE_LIMIT, that over the default.
    """

    table: TableName = None
    path: TablePath = None
    key: Annotated[str | None, "Only this setting, or those with this in their name."] = None
    filter: Filter = ""
    limit: Limit = None
    options: Options = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        key: str
        value: Annotated[str | None, "What holds."]
        origin: Annotated[str, "argument, session, table properties, environment or default"]
        default: str | None
        description: Annotated[str, "Its purpose, and what is wrong with an invalid value."]

    def run(self, caller: Caller) -> Iterable[Row]:
        return map(_row, effective_settings(self._settings(caller), self.key))

    def _settings(self, caller: Caller) -> Settings:
        if self.table or self.path:
            return open_table(caller, self.table, self.path).settings(self.options)
        return Settings.of(
            arguments=understood(self.options or {}, ALL_SETTINGS),
            session=caller.settings,
            environment=environment_settings(),
        )


def _row(found: EffectiveSetting) -> ShowConfig.Row:
    setting = found.setting
    fault = "" if found.fault is None else f" Not valid: {found.fault}"
    return ShowConfig.Row(
        key=setting.key,
        value=found.value,
        origin=found.origin.value,
        default=setting_text(setting.default),
        description=f"{setting.description}{fault}",
    )


@procedure("show_table_properties")
class ShowTableProperties(Call):
    """The properties of a table as they are stored, by their keys; a row each."""

    table: TableName = None
    path: TablePath = None
    limit: Limit = 10
    filter: Filter = ""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        key: str
        value: str

    def run(self, caller: Caller) -> Iterable[Row]:
        properties = open_table(caller, self.table, self.path).properties
        for key in sorted(properties):
            yield self.Row(key=key, value=properties[key])
