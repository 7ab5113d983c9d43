"""Configuration: what `hoodie.properties` says a table is, checked before anything is read.

Partition paths: where a table puts its partitions, and which values a path stands for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from urllib.parse import unquote

from lakewarden.engine.formats.properties import (
    CHECKSUM_KEY,
    PROPERTIES_FILE,
    parse_properties,
    verify_checksum,
)
from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from lakewarden.engine.storage.paths import check_definitions_path, check_metadata_partition
from lakewarden.engine.storage.port import Storage
from lakewarden.engine.table.merge_rules import MergeRules, merge_rules
from lakewarden.engine.timeline.instants.instant import Layout, layout_of

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class PartitionKind(Enum):
    """How a partition value becomes a path segment."""

    SIMPLE = "SIMPLE"
    TIMESTAMP = "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One partition column."""

    name: str
    kind: PartitionKind = PartitionKind.SIMPLE


@dataclass(frozen=True, slots=True)
class PartitionScheme:
    """How a table's partition paths are spelled."""

    fields: tuple[PartitionField, ...] = ()
    hive_style: bool = False
    url_encoded: bool = False
    # Old tables do not say it; then a segment tells by itself.
    says_style: bool = True

    def values(self, path: str) -> dict[str, str | None]:
        """The plain column values a path spells out; None stands for null.

        A column is skipped where the path does not tell its value: formatted timestamps, and
        values with slashes that made more levels than there are columns.
        """
        if not self.fields:
            return {}
        segments = path.split("/")
        if len(segments) != len(self.fields):
            return {}
        return {
            field.name: self._value(field, segment)
            for field, segment in zip(self.fields, segments, strict=True)
            if field.kind is PartitionKind.SIMPLE
        }

    def _value(self, field: PartitionField, segment: str) -> str | None:
        # Where columns are not named, a value may well begin like a name.
        prefix = f"{field.name}=" if self.hive_style or not self.says_style else ""
        text = segment.removeprefix(prefix)
        if text == DEFAULT_PARTITION:
            return None
        return unquote(text) if self.url_encoded else text


def parse_partition_fields(text: str, *, timestamp_keys: bool) -> tuple[PartitionField, ...]:
    """The fields of `hoodie.table.partition.fields`; custom tables spell `name:KIND`."""
    fields = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, kind = item.partition(":")
        default = PartitionKind.TIMESTAMP if timestamp_keys else PartitionKind.SIMPLE
        fields.append(PartitionField(name, PartitionKind(kind.upper()) if kind else default))
    return tuple(fields)


PROPERTIES_PATH = PROPERTIES_FILE
HIVE_STYLE_KEY = "hoodie.datasource.write.hive_style_partitioning"
BACKUP_PATH = ".hoodie/hoodie.properties.backup"
METADATA_FOLDER = ".hoodie/metadata"
# Before the settings that a table keeps for its writers. Java compares options with properties of
# the same name, and refuses to write where they differ; these are none of its business.
SETTING_PREFIX = "lakewarden.setting."
META_FIELDS_KEY = "hoodie.populate.meta.fields"
READABLE_VERSIONS = (6, 8, 9)
TIMESTAMP_GENERATORS = ("TIMESTAMP", "TIMESTAMP_AVRO")
COMPLEX_GENERATORS = ("COMPLEX", "COMPLEX_AVRO")
# Whether complex keys of one column leave its name out, where the version does not tell.
NEW_ENCODING_KEY = "hoodie.write.complex.keygen.new.encoding"

# Key generator classes of version 6 by their simple name; later versions store the type.
_DEFINITIONS_KEY = "hoodie.table.index.defs.path"
_GENERATOR_CLASSES = {
    "SimpleKeyGenerator": "SIMPLE",
    "SimpleAvroKeyGenerator": "SIMPLE",
    "ComplexKeyGenerator": "COMPLEX",
    "ComplexAvroKeyGenerator": "COMPLEX",
    "NonpartitionedKeyGenerator": "NON_PARTITION",
    "NonpartitionedAvroKeyGenerator": "NON_PARTITION",
    "TimestampBasedKeyGenerator": "TIMESTAMP",
    "TimestampBasedAvroKeyGenerator": "TIMESTAMP",
    "CustomKeyGenerator": "CUSTOM",
    "CustomAvroKeyGenerator": "CUSTOM",
    "SqlKeyGenerator": "SPARK_SQL",
}
# The other way round, as release 1.2 names them.
GENERATOR_CLASSES = {
    kind: f"org.apache.hudi.keygen.{name}"
    for name, kind in _GENERATOR_CLASSES.items()
    if kind in ("SIMPLE", "COMPLEX", "NON_PARTITION", "TIMESTAMP") and "Avro" not in name
}


class TableType(Enum):
    """How updates are written: by rewriting base files, or by log files beside them."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


@dataclass(frozen=True, slots=True)
class TableConfig:
    """A table's properties, parsed."""

    name: str
    database: str
    table_type: TableType
    version: int
    layout: Layout
    key_fields: tuple[str, ...]
    key_generator: str
    partitions: PartitionScheme
    merge: MergeRules
    has_meta_fields: bool
    drops_partition_columns: bool
    base_format: str
    metadata_partitions: tuple[str, ...]
    metadata_partitions_inflight: tuple[str, ...]
    index_definitions_path: str | None
    create_schema: str | None
    properties: Mapping[str, str] = field(repr=False)

    @property
    def identifying(self) -> tuple[str, ...]:
        """The columns that tell a row's key; where Hudi generates it, that is the key itself."""
        return self.key_fields or ("_hoodie_record_key",)

    @property
    def is_partitioned(self) -> bool:
        return bool(self.partitions.fields)

    def has_metadata(self, partition: str) -> bool:
        return partition in self.metadata_partitions


def kept_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """What a table's properties set for its writers, under the settings' own names."""
    kept = {
        name.removeprefix(SETTING_PREFIX): value
        for name, value in properties.items()
        if name.startswith(SETTING_PREFIX)
    }
    return {**properties, **kept}


def load_config(storage: Storage) -> TableConfig:
    """Read and check the properties of the table at a storage's root."""
    properties = read_properties(storage)
    if properties is None:
        raise _no_table(storage)
    return table_config(properties)


def read_properties(storage: Storage) -> Mapping[str, str] | None:
    """What the properties file says, or its backup where an update of it was cut short."""
    payload = storage.read_if_present(PROPERTIES_PATH)
    if not is_whole(payload):
        # Either an update of it was cut short, or its writer makes no checksums.
        backup = storage.read_if_present(BACKUP_PATH)
        payload = backup if is_whole(backup) else payload or backup
    return parse_properties(payload, PROPERTIES_PATH) if payload else None


def is_whole(payload: bytes | None) -> bool:
    """Whether a properties file ends as it should: with the right checksum."""
    if not payload:
        return False
    try:
        properties = parse_properties(payload, PROPERTIES_PATH)
        verify_checksum(properties, PROPERTIES_PATH)
    except CorruptTable:
        return False
    return CHECKSUM_KEY in properties


def table_config(properties: Mapping[str, str]) -> TableConfig:
    """The configuration that properties describe; what is not implemented is refused by name."""
    version = _version(properties)
    _refuse_unsupported(properties)
    generator = _key_generator(properties)
    ordering = _items(
        properties.get("hoodie.table.ordering.fields")
        or properties.get("hoodie.table.precombine.field", "")
    )
    return TableConfig(
        name=_required(properties, "hoodie.table.name"),
        database=properties.get("hoodie.database.name", ""),
        table_type=_table_type(properties),
        version=version,
        layout=layout_of(properties),
        key_fields=_items(properties.get("hoodie.table.recordkey.fields", "")),
        key_generator=generator,
        partitions=PartitionScheme(
            parse_partition_fields(
                properties.get("hoodie.table.partition.fields", ""),
                timestamp_keys=generator in TIMESTAMP_GENERATORS,
            ),
            hive_style=_flag(properties, HIVE_STYLE_KEY),
            says_style=HIVE_STYLE_KEY in properties,
            url_encoded=_flag(properties, "hoodie.datasource.write.partitionpath.urlencode"),
        ),
        merge=merge_rules(properties, ordering),
        has_meta_fields=_flag(properties, META_FIELDS_KEY, default=True),
        drops_partition_columns=_flag(properties, "hoodie.datasource.write.drop.partition.columns"),
        base_format=properties.get("hoodie.table.base.file.format", "PARQUET").upper(),
        metadata_partitions=_metadata_partitions(properties, "hoodie.table.metadata.partitions"),
        metadata_partitions_inflight=_metadata_partitions(
            properties, "hoodie.table.metadata.partitions.inflight"
        ),
        index_definitions_path=_definitions_path(properties),
        create_schema=properties.get("hoodie.table.create.schema") or None,
        properties=MappingProxyType(dict(properties)),
    )


def _metadata_partitions(properties: Mapping[str, str], key: str) -> tuple[str, ...]:
    names = _items(properties.get(key, ""))
    for name in names:
        check_metadata_partition(name, f"{key} in {PROPERTIES_PATH}")
    return names


def _definitions_path(properties: Mapping[str, str]) -> str | None:
    path = properties.get(_DEFINITIONS_KEY) or None
    if path is not None:
        check_definitions_path(path, f"{_DEFINITIONS_KEY} in {PROPERTIES_PATH}")
    return path


def _no_table(storage: Storage) -> InvalidRequest:
    return InvalidRequest(
        "no_table",
        what=f"No Hudi table is at {storage.location.uri}.",
        why=f"{PROPERTIES_PATH} and its backup are missing or empty.",
        now="Check the path: it must be the folder with `.hoodie` in it.",
        path=storage.location.uri,
    )


def _version(properties: Mapping[str, str]) -> int:
    text = _required(properties, "hoodie.table.version")
    if not text.isdigit():
        raise _bad_property("hoodie.table.version", text)
    version = int(text)
    if version not in READABLE_VERSIONS:
        raise InvalidRequest(
            "unsupported_table_version",
            what=f"Lakewarden does not read tables of version {version}.",
            why=f"It reads versions {', '.join(map(str, READABLE_VERSIONS))}.",
            now="Upgrade the table with Hudi, or use a newer Lakewarden.",
            version=version,
        )
    return version


def _refuse_unsupported(properties: Mapping[str, str]) -> None:
    base_format = properties.get("hoodie.table.base.file.format", "PARQUET").upper()
    if base_format not in ("PARQUET", "HFILE"):
        raise _unsupported("base_file_format", f"base files in format {base_format}")
    if properties.get("hoodie.bootstrap.base.path"):
        raise _unsupported("bootstrap", "bootstrap base files")
    encryption = [key for key in properties if key.startswith("parquet.encryption.")]
    if encryption:
        raise _unsupported("encryption", f"encrypted base files ({encryption[0]})")


def _unsupported(code: str, what: str) -> InvalidRequest:
    return InvalidRequest(
        f"unsupported_{code}",
        what=f"The table has {what}, which Lakewarden does not implement.",
        why="A read could miss rows or return wrong ones.",
        now="Read the table with the engine that wrote it.",
    )


def _key_generator(properties: Mapping[str, str]) -> str:
    kind = properties.get("hoodie.table.keygenerator.type")
    if kind:
        return kind.upper()
    return generator_of_class(properties.get("hoodie.table.keygenerator.class", ""))


def generator_of_class(class_name: str) -> str:
    """The type of a key generator by its class; another class stands for itself."""
    name = class_name.rpartition(".")[2]
    return _GENERATOR_CLASSES.get(name, name or "UNKNOWN")


def _table_type(properties: Mapping[str, str]) -> TableType:
    text = _required(properties, "hoodie.table.type")
    try:
        return TableType(text.upper())
    except ValueError:
        raise _bad_property("hoodie.table.type", text) from None


def _required(properties: Mapping[str, str], key: str) -> str:
    value = properties.get(key)
    if not value:
        raise CorruptTable(
            "missing_property",
            what=f"{PROPERTIES_PATH} does not say {key}.",
            why="Every Hudi table has it. Probably the file was truncated or edited.",
            now="Restore the file from its backup.",
            path=PROPERTIES_PATH,
            key=key,
        )
    return value


def _bad_property(key: str, value: str) -> CorruptTable:
    return CorruptTable(
        "bad_property",
        what=f"{PROPERTIES_PATH} says {key}={value!r}.",
        why="This property cannot have that value.",
        now="Restore the file from its backup.",
        path=PROPERTIES_PATH,
        key=key,
    )


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _flag(properties: Mapping[str, str], key: str, *, default: bool = False) -> bool:
    return properties.get(key, str(default)).strip().lower() == "true"
