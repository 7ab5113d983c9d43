"""Creating a table: its properties, which are there as a whole or not at all."""

from collections.abc import Collection, Mapping, Sequence

from lakewarden.engine.formats.properties import parse_properties
from lakewarden.engine.index.identity import SCOPE_KEY, buckets_of, record_of, refuse_other_engines
from lakewarden.engine.index.kinds import IndexChoice, IndexKind, parse_kind
from lakewarden.engine.index.options import INDEX_TYPE
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, Settings, refuse_unknown
from lakewarden.engine.metadata.reading.table import RECORD_INDEX
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.config import (
    PROPERTIES_PATH,
    SETTING_PREFIX,
    TableConfig,
    is_whole,
    table_config,
)
from lakewarden.engine.table.creation import (
    NewTable,
    is_creation_property,
    new_table_config,
    refuse_fixed,
)
from lakewarden.engine.table.keygen.virtual_keys import refuse_unsupported_virtual_keys
from lakewarden.engine.table.properties_file import write_properties
from lakewarden.engine.table.versions import refuse_read_only
from lakewarden.engine.timeline.instants.instant import FOLDER_KEEPER, layout_of
from lakewarden.engine.transaction.state.markers import TEMP_FOLDER
from lakewarden.engine.write.metadata_table import (
    INDEX_SWITCHES,
    PARTITIONED_RECORD_INDEX_ENABLED,
    default_partitions,
    scope_of_default,
)


def create_table(
    storage: Storage,
    asked: NewTable,
    *,
    index: str | None,
    indexes: Sequence[str],
    known: Collection[Setting[object]],
) -> None:
    """Write the properties of a new table; what writes shall do with it is kept among them.

    After this the table exists and is empty; its metadata table comes with the first write at the
    latest. What is neither a property of a table nor among the `known` settings is refused.
    """
    refuse_fixed(asked.properties)
    settings = _settings(asked, index, indexes)
    refuse_unknown(settings, known)
    config = new_table_config(asked)
    refuse_unsupported_virtual_keys(config)
    kept = {f"{SETTING_PREFIX}{key}": value for key, value in settings.items()}
    properties = {**config.properties, **kept, **_identity(config, settings)}
    table_config(properties)
    # Refuses what its metadata table cannot have.
    default_partitions(config, Settings.of(table=settings))
    refuse_read_only(config, storage)
    _refuse_other(storage, properties)
    # Java lists the timeline of a table without instants, and, to detect conflicts early, the
    # markers of one without writes; a folder is there only with a file.
    for folder in (layout_of(properties).history_folder, TEMP_FOLDER):
        storage.put(f"{folder}/{FOLDER_KEEPER}", b"")
    write_properties(storage, properties)


def _settings(asked: NewTable, index: str | None, indexes: Sequence[str]) -> dict[str, str]:
    """The settings that a table keeps for all writers that read them."""
    settings = {
        key: str(value) for key, value in asked.properties.items() if not is_creation_property(key)
    }
    if index is not None:
        settings[INDEX_TYPE.key] = _index_type(index)
    for name in indexes:
        if name not in INDEX_SWITCHES:
            raise InvalidRequest(
                "unsupported_index",
                what=f"Lakewarden cannot create a table with the index {name!r}.",
                why=f"Writes can maintain {', '.join(INDEX_SWITCHES)}.",
                now="Leave it out.",
                index=name,
            )
        settings[_switch(name, settings, is_partitioned=bool(asked.partition))] = "true"
    return settings


def _switch(name: str, settings: Mapping[str, str], *, is_partitioned: bool) -> str:
    """What switches an index on; one of all record keys has each of them once, so that where these
    may be in several partitions it is made for each partition."""
    kind = Settings.of(table=settings)[INDEX_TYPE]
    if name == RECORD_INDEX and is_partitioned and kind is not None and not kind.is_global:
        return PARTITIONED_RECORD_INDEX_ENABLED.key
    return INDEX_SWITCHES[name]


def _identity(config: TableConfig, settings: Mapping[str, str]) -> dict[str, str]:
    """The properties that record within what a key stands for one row."""
    given = Settings.of(table=settings)
    kind = given[INDEX_TYPE]
    if kind is None:
        return {SCOPE_KEY: scope_of_default(given).value}
    if kind is not IndexKind.BUCKET:
        return {}
    refuse_other_engines(config, given)
    if not config.key_fields:
        raise InvalidRequest(
            "bad_index",
            what="A table without key columns cannot have a bucket index.",
            why="It divides rows by the values of their key columns.",
            now="Pass key columns, or leave the index out.",
        )
    selection = IndexChoice(kind, buckets=buckets_of(given, config.key_fields))
    record = record_of(selection, is_named=True)
    return {key: value for key, value in record.items() if value is not None}


def _index_type(text: str) -> str:
    try:
        return parse_kind(text).value
    except ValueError as error:
        raise InvalidRequest(
            "bad_index",
            what=f"Lakewarden has no index {text!r}.",
            why=f"{str(error)[:1].upper()}{str(error)[1:]}.",
            now="Leave it out: writes then use the table's record index, or SIMPLE.",
            index=text,
        ) from None


def _refuse_other(storage: Storage, properties: Mapping[str, str]) -> None:
    """A table of the same kind may be there already, further on in its life."""
    payload = storage.read_if_present(PROPERTIES_PATH)
    if not is_whole(payload):
        return
    assert payload is not None
    present = parse_properties(payload, PROPERTIES_PATH)
    differing = [key for key, value in properties.items() if present.get(key) != value]
    raise InvalidRequest(
        "table_exists",
        what=f"A table already exists at {storage.location.uri}.",
        why=f"It differs in {differing[0]}." if differing else "It has the same properties.",
        now="Open it with Table(path), or choose another path.",
        path=storage.location.uri,
    )
