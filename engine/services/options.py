"""Options: every setting that an operation knows, and how a caller gives them.

Settings that all services by plans share.

Settings of Hudi that Lakewarden has no setting of its own for: what each comes to here.

The table of them is `hudi_settings.toml`. One without effect is named once in a process; one that
would change rows or files is refused.

Effective settings: what every setting is worth here, and who has said so.
"""

import tomllib
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from lakewarden.engine.detection.strategies import CHECKS, DERIVED, DETECTION_SETTINGS
from lakewarden.engine.index.options import INDEX_SETTINGS
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import (
    Origin,
    Setting,
    Settings,
    by_keyword,
    refuse_unknown,
    whole_number,
)
from lakewarden.engine.locks.settings import LOCK_SETTINGS
from lakewarden.engine.services.clustering.settings import CLUSTERING_SETTINGS
from lakewarden.engine.services.compaction.settings import COMPACTION_SETTINGS
from lakewarden.engine.services.indexing.base_files import KEYS_HELD_BYTES
from lakewarden.engine.services.indexing.catch_up import INDEXING_SETTINGS
from lakewarden.engine.services.inline import INLINE_SETTINGS
from lakewarden.engine.services.log_compaction.service import LOG_COMPACTION_SETTINGS
from lakewarden.engine.services.metadata_table.service import METADATA_SERVICE_SETTINGS
from lakewarden.engine.services.removal import EXPIRY_SETTINGS
from lakewarden.engine.services.retention.settings import ARCHIVE_SETTINGS, CLEAN_SETTINGS
from lakewarden.engine.services.table_version import VERSION_SETTINGS
from lakewarden.engine.table.config import SETTING_PREFIX, TableConfig
from lakewarden.engine.table.creation import (
    NewTable,
    is_creation_property,
    is_fixed_property,
    refuse_fixed,
)
from lakewarden.engine.table.description import (
    DESCRIBING,
    KEY,
    ORDERING,
    PARTITION,
    described,
    refuse_other,
)
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.transaction.state.context import CANCELLABLE, Context
from lakewarden.engine.transaction.state.settings import PLAN_SETTINGS
from lakewarden.engine.transaction.window.window import WINDOW_SETTINGS
from lakewarden.engine.write.distributed_rows import DISTRIBUTED_SETTINGS
from lakewarden.engine.write.metadata_table import METADATA_SETTINGS
from lakewarden.engine.write.routing.sizes import SIZE_SETTINGS
from lakewarden.engine.write.settings import STATEMENT_SETTINGS, WRITE_SETTINGS

SPARK_BYTES_MIN = Setting(
    "lakewarden.services.spark_bytes_min",
    512 << 20,
    whole_number,
    (
        "From how many bytes to read Spark's workers execute a plan that a session's call runs; "
        "threads execute smaller ones, and start at once"
    ),
)
SERVICE_SETTINGS: tuple[Setting[object], ...] = (SPARK_BYTES_MIN,)


_PATH = Path(__file__).with_name("hudi_settings.toml")
# The keys that have been named in this process, as having no effect.
_NAMED: set[str] = set()


class NoEffect(UserWarning):
    """A setting of Hudi has no effect here."""


class _Group(TypedDict):
    why: str
    keys: list[str]


class _Limited(TypedDict):
    key: str
    why: str
    values: NotRequired[list[str]]


class _Document(TypedDict):
    """The table as it is written down."""

    ignored: list[_Group]
    families: list[_Group]
    limited: list[_Limited]


@dataclass(frozen=True, slots=True)
class ForeignSetting:
    """What becomes of a key; other values than these are refused, if there are any."""

    key: str
    why: str
    is_limited: bool = False
    values: tuple[str, ...] = ()

    def check(self, value: str) -> None:
        """Refuse a value that would change rows or files if it were ignored."""
        plain = value.strip()
        if not self.is_limited or not plain or plain.lower() in self.values:
            return
        allowed = f"set it to {' or '.join(self.values)}, or " if self.values else ""
        raise InvalidRequest(
            "unsupported_setting",
            what=f"Lakewarden cannot write or read with {self.key}={value}.",
            why=f"{self.why} Without it rows or files would be others.",
            now=f"{allowed[:1].upper()}{allowed[1:]}{'l' if allowed else 'L'}eave it out.",
            setting=self.key,
            value=value,
        )


def understood(
    given: Mapping[str, object], known: Iterable[Setting[object]], also: Iterable[str] = ()
) -> dict[str, object]:
    """The options that have an effect. Others of Hudi's are named, and those unknown refused.

    `also` are names that only this caller knows.
    """
    known, also = tuple(known), frozenset(also)
    names = {name for setting in known for name in setting.names} | also
    options: dict[str, object] = {}
    left: dict[str, object] = {}
    for key, value in given.items():
        if key in names or key in DESCRIBING or is_creation_property(key):
            options[key] = value
        else:
            left[key] = value
    refuse_fixed({key: _text(value) for key, value in left.items()})
    left = {key: value for key, value in left.items() if not is_fixed_property(key)}
    foreign = foreign_settings()
    unknown = [key for key in left if of_hudi(key) is None]
    refuse_unknown(unknown, known, {*foreign, *DESCRIBING, *also})
    check_values(left)
    for key in left:
        _name_once(key)
    return options


def check_values(given: Mapping[str, object]) -> None:
    """Refuse settings that would change rows or files; a session may have others of all kinds."""
    described(given)
    for key, value in given.items():
        found = of_hudi(key)
        if found is not None:
            found.check(_text(value))


def of_hudi(key: str) -> ForeignSetting | None:
    """What becomes of a setting that only Hudi has."""
    found = foreign_settings().get(key)
    if found is not None:
        return found
    why = next((why for prefix, why in _families().items() if key.startswith(prefix)), None)
    return None if why is None else ForeignSetting(key, why)


@cache
def foreign_settings() -> Mapping[str, ForeignSetting]:
    """All of them, by their keys."""
    found = {
        key: ForeignSetting(key, group["why"])
        for group in _document()["ignored"]
        for key in group["keys"]
    }
    for one in _document()["limited"]:
        values = tuple(one.get("values", ()))
        found[one["key"]] = ForeignSetting(one["key"], one["why"], is_limited=True, values=values)
    return found


@cache
def _families() -> Mapping[str, str]:
    return {key: group["why"] for group in _document()["families"] for key in group["keys"]}


@cache
def _document() -> _Document:
    return cast(_Document, tomllib.loads(_PATH.read_text()))


def _name_once(key: str) -> None:
    found = of_hudi(key)
    if found is None or key in _NAMED:
        return
    _NAMED.add(key)
    warnings.warn(f"{key} has no effect here. {found.why}", NoEffect, stacklevel=2)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# By what they are about, in the order in which people meet them.
SECTIONS: Mapping[str, Sequence[Setting[object]]] = {
    "Rows and files": WRITE_SETTINGS,
    "Statements": STATEMENT_SETTINGS,
    "Sizes": SIZE_SETTINGS,
    "Spark": DISTRIBUTED_SETTINGS,
    "Finding keys": INDEX_SETTINGS,
    "The version of the format": VERSION_SETTINGS,
    "The metadata table of a new table": METADATA_SETTINGS,
    "Several writers, failed writes": PLAN_SETTINGS,
    "Early conflict detection": DETECTION_SETTINGS,
    "Plans of table services": (
        *CANCELLABLE.values(),
        *WINDOW_SETTINGS,
        *SERVICE_SETTINGS,
    ),
    "Services after writes": INLINE_SETTINGS,
    "Compaction": COMPACTION_SETTINGS,
    "Log compaction": LOG_COMPACTION_SETTINGS,
    "Index builds": (*INDEXING_SETTINGS, KEYS_HELD_BYTES),
    "Clustering": CLUSTERING_SETTINGS,
    "Clean": CLEAN_SETTINGS,
    "Archive": ARCHIVE_SETTINGS,
    "Expiry of partitions": EXPIRY_SETTINGS,
    "Services of the metadata table": METADATA_SERVICE_SETTINGS,
    "Locks": LOCK_SETTINGS,
}
ALL_SETTINGS = tuple(setting for settings in SECTIONS.values() for setting in settings)


# What writes are about: a keyword means one of these before it means any other.
OF_WRITES = (*WRITE_SETTINGS, *SIZE_SETTINGS)


def given_options(
    options: Mapping[str, object] | None,
    keywords: Mapping[str, object],
    own: Sequence[Setting[object]] = (),
    parameters: Collection[str] = (),
) -> dict[str, object]:
    """What a caller sets by key or by keyword; what means nothing is refused by name.

    Settings that only Hudi has are omitted.
    Keywords are looked for among the operation's own settings first. `parameters` of the call are
    what a misspelt one may mean, too.
    """
    if options is not None and not isinstance(options, Mapping):
        raise InvalidRequest(
            "bad_options",
            what=f"Options cannot come from a {type(options).__name__}.",
            why="Options are names with values.",
            now="Give {'hoodie.parquet.max.file.size': 1 << 27}, for example, or keywords.",
        )
    given = understood(options or {}, ALL_SETTINGS)
    named = by_keyword(keywords, ALL_SETTINGS, own, parameters)
    twice = sorted(set(given) & set(named))
    if twice:
        raise InvalidRequest(
            "repeated_option",
            what=f"The call gives {twice[0]} as an option and as a keyword.",
            why="It can have one value.",
            now="Leave one of them out.",
            option=twice[0],
        )
    return given | named


def in_our_words(asked: NewTable) -> NewTable:
    """A table that is asked for, with what its properties say of it by names of Hudi."""
    said = described(understood(asked.properties, ALL_SETTINGS))
    for names, given, named in (
        (KEY, said.key, asked.key),
        (PARTITION, said.partition, asked.partition),
        (ORDERING, said.ordering, asked.ordering),
    ):
        if given and named and list(given) != list(named):
            raise InvalidRequest(
                "repeated_option",
                what=f"{names[0]} is {','.join(given)}, and {','.join(named)} in the call.",
                why="A table has one of them.",
                now="Leave one of them out.",
            )
    return replace(
        asked,
        key=asked.key or said.key,
        partition=asked.partition or said.partition,
        ordering=asked.ordering or said.ordering,
        merge_mode=asked.merge_mode or said.merge_mode or None,
        properties=said.properties,
    )


def keep_settings(
    context: Context, config: TableConfig, settings: Mapping[str, str], removed: Sequence[str] = ()
) -> None:
    """Keep settings with a table for all of its writers; those that are removed hold no more.

    What describes the table has to be so; what a key is found by, another call changes.
    """
    names = {name: setting for setting in ALL_SETTINGS for name in setting.names}
    given = understood(settings, ALL_SETTINGS)
    refuse_other(config, given)
    refuse_unknown(removed, ALL_SETTINGS, {*foreign_settings(), *DESCRIBING})
    chosen = {key: str(value) for key, value in given.items() if key in names}
    asked = Settings.of(arguments=chosen)
    for key in (*chosen, *(key for key in removed if key in names)):
        if key in chosen:
            asked.resolve(names[key])
        if key in {name for setting in INDEX_SETTINGS[:4] for name in setting.names}:
            raise InvalidRequest(
                "other_identity",
                what=f"A property cannot change {key}.",
                why="It decides which rows are one row, and the table's rows follow it.",
                now="CALL set_index changes it as far as the rows allow.",
                setting=key,
            )
    changes: dict[str, str | None] = {
        f"{SETTING_PREFIX}{key}": None for key in removed if key in names
    }
    changes |= {f"{SETTING_PREFIX}{key}": value for key, value in chosen.items()}
    if changes:
        with context.lock.hold() as held:
            held.assert_held()
            update_properties(context.storage, changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSetting:
    """A setting with its value as text; `fault` says what is wrong with one that can't be used."""

    setting: Setting[object]
    value: str | None
    origin: Origin
    fault: str | None = None


def effective_settings(settings: Settings, wanted: str | None = None) -> Iterator[EffectiveSetting]:
    """All settings in their order; only one of a name, or those that have it in theirs."""
    names = (wanted or "").strip().lower()
    exact = [one for one in ALL_SETTINGS if names in map(str.lower, one.names)]
    for setting in exact or ALL_SETTINGS:
        if any(names in name.lower() for name in setting.names):
            yield _effective(setting, settings)


def setting_text(value: object) -> str | None:
    """A value as it is written; None where there is none."""
    if value is None:
        return None
    if isinstance(value, tuple | list | frozenset):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _effective(setting: Setting[object], settings: Settings) -> EffectiveSetting:
    try:
        found = settings.resolve(setting)
        if setting.key in CHECKS:
            CHECKS[setting.key](settings)
    except InvalidRequest as error:
        origin, raw = _given(setting, settings)
        return EffectiveSetting(setting=setting, value=raw, origin=origin, fault=error.why)
    value = DERIVED[setting.key](settings) if setting.key in DERIVED else found.value
    return EffectiveSetting(setting=setting, value=setting_text(value), origin=found.origin)


def _given(setting: Setting[object], settings: Settings) -> tuple[Origin, str]:
    return next(
        (origin, values[name])
        for origin, values in settings.layers
        for name in setting.names
        if name in values
    )
