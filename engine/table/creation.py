"""Creation: from what a user asks for to the properties of a new table, all checked beforehand."""

import difflib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import avro_schema, is_avro_name
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.change_logging import (
    CDC_ENABLED,
    CDC_LOGGING_MODE,
    captures_changes,
    logging_mode,
)
from lakewarden.engine.table.column_types import column_at
from lakewarden.engine.table.config import (
    META_FIELDS_KEY,
    TIMESTAMP_GENERATORS,
    TableConfig,
    TableType,
    table_config,
)
from lakewarden.engine.table.merge_rules import MergeMode
from lakewarden.engine.table.schema import META_COLUMNS
from lakewarden.engine.table.versions import NEWEST, OLDEST, WRITABLE_VERSIONS, after, changed_to

CREATED_VERSION = str(NEWEST)
# By this name users of Hudi ask for an older version.
WRITE_VERSION_KEY = "hoodie.write.table.version"

_TYPES = {
    "cow": TableType.COPY_ON_WRITE,
    "copy_on_write": TableType.COPY_ON_WRITE,
    "mor": TableType.MERGE_ON_READ,
    "merge_on_read": TableType.MERGE_ON_READ,
}
_MODES = {
    "commit_time": MergeMode.COMMIT_TIME,
    "commit_time_ordering": MergeMode.COMMIT_TIME,
    "event_time": MergeMode.EVENT_TIME,
    "event_time_ordering": MergeMode.EVENT_TIME,
}
# What every new table of version 9 has, whatever is asked for.
_CONSTANT = {
    "hoodie.table.version": CREATED_VERSION,
    "hoodie.table.initial.version": CREATED_VERSION,
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.archivelog.folder": "history",
    "hoodie.table.format": "native",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.table.multiple.base.file.formats.enable": "false",
}
# What a user may choose by property; the value is the default.
_CHOICES = {
    "hoodie.table.name": "",
    "hoodie.database.name": "",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.datasource.write.slash.separated.date.partitioning": "",
    "hoodie.table.keygenerator.type": "",
    "hoodie.table.partial.update.mode": "",
    META_FIELDS_KEY: "true",
    CDC_ENABLED: "false",
    CDC_LOGGING_MODE: "",
    "lakewarden.partition.timestamps": "",
}
_CHOICE_PREFIXES = ("hoodie.keygen.timebased.", "hoodie.record.merge.property.")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSAFE = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """What a user asks for; `properties` are Hudi's own names for everything else."""

    name: str
    schema: pa.Schema
    key: Sequence[str]
    partition: Sequence[str] = ()
    ordering: Sequence[str] = ()
    type: str = "cow"
    merge_mode: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def new_table_config(asked: NewTable) -> TableConfig:
    """The configuration of the table to be; anything wrong with the request is named here."""
    _check_columns(asked)
    properties = {key: value for key, value in {**_CONSTANT, **_chosen(asked)}.items() if value}
    # Parsing refuses what no reader of ours would understand, before anything is written.
    config = table_config(MappingProxyType(properties))
    wanted = asked.properties.get(WRITE_VERSION_KEY, "").strip() or CREATED_VERSION
    return config if wanted == CREATED_VERSION else _of_version(config, wanted)


def _of_version(config: TableConfig, wanted: str) -> TableConfig:
    if wanted not in map(str, WRITABLE_VERSIONS):
        raise _bad_argument(WRITE_VERSION_KEY, wanted, tuple(map(str, WRITABLE_VERSIONS)))
    changes = changed_to(config, int(wanted))
    if int(wanted) > OLDEST:
        changes["hoodie.table.initial.version"] = wanted
    return after(config.properties, changes)


def is_creation_property(key: str) -> bool:
    """Whether a property belongs to the table itself, not to how it is written."""
    return key in (*_CHOICES, WRITE_VERSION_KEY) or key.startswith(_CHOICE_PREFIXES)


def is_layout_property(key: str) -> bool:
    """Whether a property says how partition paths are made, or what files store, so that writers
    have to agree."""
    if key == META_FIELDS_KEY:
        return True
    return key.startswith((*_CHOICE_PREFIXES, "hoodie.datasource.write.")) and (
        is_creation_property(key)
    )


def is_fixed_property(key: str) -> bool:
    """Whether creation itself decides a property."""
    return key in _CONSTANT


def refuse_fixed(properties: Mapping[str, str]) -> None:
    """Refuse properties that creation itself decides, when they say something else."""
    for key, value in properties.items():
        if key in _CONSTANT and value.lower() not in ("", _CONSTANT[key].lower()):
            raise InvalidRequest(
                "unsupported_property",
                what=f"Lakewarden cannot make a table with {key}={value}.",
                why=f"New tables have {key}={_CONSTANT[key]}.",
                now="Leave the property out.",
                property=key,
            )


def table_name(path: str) -> str:
    """The name of a table from its folder's, as Avro allows names."""
    name = _UNSAFE.sub("_", path.rstrip("/").rpartition("/")[2])
    return name if _NAME.fullmatch(name) else f"t_{name}"


def property_texts(properties: Mapping[str, object]) -> dict[str, str]:
    """Properties as Hudi spells their values."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in properties.items()
    }


def _chosen(asked: NewTable) -> dict[str, str]:
    given = {key: value for key, value in asked.properties.items() if is_creation_property(key)}
    given.pop(WRITE_VERSION_KEY, None)
    name = given.get("hoodie.table.name") or asked.name
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            "bad_table_name",
            what=f"{name!r} is not a valid table name.",
            why=(
                "The Avro schema contains it, and Avro allows letters, digits and underscores only."
            ),
            now="Pass another name. The folder may have any name.",
            name=name,
        )
    generator = given.get("hoodie.table.keygenerator.type") or _key_generator(asked)
    return {
        **_CHOICES,
        **given,
        "hoodie.table.name": name,
        "hoodie.table.type": _table_type(asked.type).value,
        "hoodie.table.recordkey.fields": ",".join(asked.key),
        "hoodie.table.partition.fields": ",".join(asked.partition),
        "hoodie.table.ordering.fields": ",".join(asked.ordering),
        "hoodie.table.keygenerator.type": generator.upper(),
        "hoodie.record.merge.mode": _merge_mode(asked).value,
        "hoodie.table.create.schema": schema_text(asked.schema, name),
        **_captured(given),
    }


def _captured(given: Mapping[str, str]) -> dict[str, str]:
    """Whether the table captures changes, and how much of each it logs."""
    mode = logging_mode({key: value for key, value in given.items() if value}).value
    if captures_changes(given):
        return {CDC_ENABLED: "true", CDC_LOGGING_MODE: mode}
    return {CDC_ENABLED: "false"}


def schema_text(schema: pa.Schema, name: str) -> str:
    """The schema as new tables store it: every column may be null."""
    columns = pa.schema([column.with_nullable(True) for column in schema])
    return avro_schema(columns, f"{name}_record", f"hoodie.{name}")


def _key_generator(asked: NewTable) -> str:
    if not asked.partition:
        return "NON_PARTITION"
    if any(":" in item for item in asked.partition):
        return "CUSTOM"
    if any(key.startswith("hoodie.keygen.timebased.") for key in asked.properties):
        return TIMESTAMP_GENERATORS[0]
    return "SIMPLE" if len(asked.key) == len(asked.partition) == 1 else "COMPLEX"


def _table_type(text: str) -> TableType:
    if text.lower() not in _TYPES:
        raise _bad_argument("type", text, ("cow", "mor"))
    return _TYPES[text.lower()]


def _merge_mode(asked: NewTable) -> MergeMode:
    if asked.merge_mode is None:
        return MergeMode.EVENT_TIME if asked.ordering else MergeMode.COMMIT_TIME
    if asked.merge_mode.lower() not in _MODES:
        raise _bad_argument("merge_mode", asked.merge_mode, ("event_time", "commit_time"))
    mode = _MODES[asked.merge_mode.lower()]
    if mode is MergeMode.EVENT_TIME and not asked.ordering:
        raise InvalidRequest(
            "missing_ordering",
            what="Merging by event time needs an ordering column.",
            why="Only an ordering column says which of two rows is newer.",
            now="Pass ordering=['<column>'], or merge_mode='commit_time'.",
        )
    return mode


def _check_columns(asked: NewTable) -> None:
    names = asked.schema.names
    if not names:
        raise InvalidRequest(
            "no_columns",
            what="A table needs columns.",
            why="The schema has no columns.",
            now="Add columns to the schema.",
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidRequest(
            "repeated_columns",
            what=f"The schema has the column {repeated[0]!r} more than once.",
            why="Lakewarden finds columns by name.",
            now="Rename one of them.",
        )
    for name in names:
        if not is_avro_name(name) or name in META_COLUMNS:
            raise InvalidRequest(
                "bad_column_name",
                what=f"{name!r} is not a valid column name.",
                why=(
                    "Avro allows letters, digits and underscores. Names of Hudi's own "
                    "columns are reserved."
                ),
                now="Rename the column.",
                column=name,
            )
    for role, fields in (
        ("key", asked.key),
        ("partition", [item.partition(":")[0] for item in asked.partition]),
        ("ordering", asked.ordering),
    ):
        for column in fields:
            _check_known(role, column, asked.schema)


def _check_known(role: str, column: str, schema: pa.Schema) -> None:
    names = schema.names
    with suppress(InvalidRequest):
        column_at(schema.empty_table(), column)
        return
    nearest = difflib.get_close_matches(column, names, n=1)
    raise InvalidRequest(
        "unknown_column",
        what=f"The schema has no column {column!r} for a {role} column.",
        why=f"It has {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}.",
        now=f"Did you mean {nearest[0]!r}?" if nearest else "Name one of them.",
        column=column,
    )


def _bad_argument(name: str, value: str, allowed: tuple[str, ...]) -> InvalidRequest:
    return InvalidRequest(
        f"bad_{name}",
        what=f"{name} cannot take {value!r}.",
        why=f"It must be one of {', '.join(allowed)}.",
        now=f"Pass {name}={allowed[0]!r}, for example.",
    )
