"""Options: every setting that an operation knows, and how a caller gives them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from lakewarden.engine.detection.strategies import DETECTION_SETTINGS
from lakewarden.engine.index.options import INDEX_SETTINGS
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings, by_keyword, refuse_unknown
from lakewarden.engine.locks.settings import LOCK_SETTINGS
from lakewarden.engine.services.clustering.settings import CLUSTERING_SETTINGS
from lakewarden.engine.services.compaction.settings import COMPACTION_SETTINGS
from lakewarden.engine.services.hudi_settings import foreign_settings, understood
from lakewarden.engine.services.indexing.base_files import KEYS_HELD_BYTES
from lakewarden.engine.services.indexing.catch_up import INDEXING_SETTINGS
from lakewarden.engine.services.inline import INLINE_SETTINGS
from lakewarden.engine.services.log_compaction.settings import LOG_COMPACTION_SETTINGS
from lakewarden.engine.services.metadata_table.settings import METADATA_SERVICE_SETTINGS
from lakewarden.engine.services.removal import EXPIRY_SETTINGS
from lakewarden.engine.services.retention.archive_settings import ARCHIVE_SETTINGS
from lakewarden.engine.services.retention.clean_settings import CLEAN_SETTINGS
from lakewarden.engine.services.settings import SERVICE_SETTINGS
from lakewarden.engine.services.table_version import VERSION_SETTINGS
from lakewarden.engine.table.config import SETTING_PREFIX, TableConfig
from lakewarden.engine.table.creation import NewTable
from lakewarden.engine.table.description import (
    DESCRIBING,
    KEY,
    ORDERING,
    PARTITION,
    described,
    refuse_other,
)
from lakewarden.engine.table.properties_file import update_properties
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.service import CANCELLABLE
from lakewarden.engine.transaction.state.settings import PLAN_SETTINGS
from lakewarden.engine.transaction.window.window import WINDOW_SETTINGS
from lakewarden.engine.write.distributed_rows import DISTRIBUTED_SETTINGS
from lakewarden.engine.write.metadata_table import METADATA_SETTINGS
from lakewarden.engine.write.routing.sizes import SIZE_SETTINGS
from lakewarden.engine.write.settings import WRITE_SETTINGS
from lakewarden.engine.write.statement_settings import STATEMENT_SETTINGS

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

    Settings that only Hudi has are left out.
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
    for names, told, named in (
        (KEY, said.key, asked.key),
        (PARTITION, said.partition, asked.partition),
        (ORDERING, said.ordering, asked.ordering),
    ):
        if told and named and list(told) != list(named):
            raise InvalidRequest(
                "repeated_option",
                what=f"{names[0]} is {','.join(told)}, and {','.join(named)} in the call.",
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
