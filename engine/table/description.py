"""Descriptions: what options say of a table, by the names under which Hudi knows it.

A new table becomes what they say. A table that is there has to be it: rows would be others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.change_logging import (
    CDC_ENABLED,
    CDC_LOGGING_MODE,
    captures_changes,
    logging_mode,
)
from lakewarden.engine.table.config import TableConfig, generator_of_class
from lakewarden.engine.table.creation import is_layout_property
from lakewarden.engine.table.merge_rules import (
    MergeMode,
    PartialMode,
    PayloadMerging,
    payload_merging,
)

KEY = ("hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields")
PARTITION = ("hoodie.datasource.write.partitionpath.field", "hoodie.table.partition.fields")
ORDERING = (
    "hoodie.table.ordering.fields",
    "hoodie.datasource.write.precombine.field",
    "hoodie.table.precombine.field",
)
TYPE = ("hoodie.datasource.write.table.type", "hoodie.table.type")
MERGE_MODE = ("hoodie.write.record.merge.mode", "hoodie.record.merge.mode")
GENERATOR_CLASS = (
    "hoodie.datasource.write.keygenerator.class",
    "hoodie.table.keygenerator.class",
)
GENERATOR_TYPE = ("hoodie.datasource.write.keygenerator.type",)
GENERATOR = "hoodie.table.keygenerator.type"
PAYLOAD = (
    "hoodie.datasource.write.payload.class",
    "hoodie.compaction.payload.class",
    "hoodie.table.legacy.payload.class",
)
OPERATION = "hoodie.datasource.write.operation"
DESCRIBING = frozenset(
    (
        *KEY,
        *PARTITION,
        *ORDERING,
        *TYPE,
        *MERGE_MODE,
        *GENERATOR_CLASS,
        *GENERATOR_TYPE,
        *PAYLOAD,
        OPERATION,
    )
)
# The names of CREATE TABLE in Hudi's SQL, in lower case.
SHORT_NAMES = {
    "primarykey": KEY[0],
    "orderingfields": ORDERING[0],
    "precombinefield": ORDERING[0],
    "type": TYPE[0],
    "recordmergemode": MERGE_MODE[0],
}
# Generators that make partition paths of values as they are.
_PLAIN = frozenset(("SIMPLE", "COMPLEX", "NON_PARTITION", "SPARK_SQL", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    """What options say of a table; what they don't say is empty. `others` are no part of it."""

    key: Sequence[str] = ()
    partition: Sequence[str] = ()
    ordering: Sequence[str] = ()
    type: str = ""
    merge_mode: str = ""
    generator: str = ""
    payload: PayloadMerging | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, str]:
        """What creation takes as properties."""
        said = dict(self.others)
        if self.generator and self.generator != "SPARK_SQL":
            said[GENERATOR] = self.generator
        return {**({} if self.payload is None else self.payload.properties), **said}


def described(options: Mapping[str, object]) -> TableDescription:
    """What some options say of a table; classes that only Java can run are refused."""
    given = {key: str(value) for key, value in options.items()}
    payload = _first(given, PAYLOAD)
    merging = payload_merging(payload) if payload else None
    ordering = _names(given, ORDERING) or (merging.ordering_fields if merging else ())
    mode = _first(given, MERGE_MODE)
    if not mode and merging is not None:
        # By event time without any is by commit time, as Hudi has it.
        by_event = merging.mode is MergeMode.EVENT_TIME and bool(ordering)
        mode = (MergeMode.EVENT_TIME if by_event else MergeMode.COMMIT_TIME).value
    class_name = _first(given, GENERATOR_CLASS)
    return TableDescription(
        key=_names(given, KEY),
        partition=_names(given, PARTITION),
        ordering=ordering,
        type=_first(given, TYPE),
        merge_mode=mode,
        generator=generator_of_class(class_name)
        if class_name
        else (_first(given, GENERATOR_TYPE) or given.get(GENERATOR, "")).upper(),
        payload=merging,
        others={
            key: value for key, value in given.items() if key not in DESCRIBING and key != GENERATOR
        },
    )


def refuse_other(config: TableConfig, options: Mapping[str, object]) -> None:
    """Refuse options that describe another table than the one there is."""
    asked = described(options)
    for names, said, present in (
        (KEY, asked.key, config.key_fields),
        (PARTITION, _plain(asked.partition), [one.name for one in config.partitions.fields]),
        (ORDERING, asked.ordering, config.merge.ordering_fields),
    ):
        if said and list(said) != list(present):
            raise _other(names[0], ",".join(said), ",".join(present))
    type_ = asked.type.upper().replace("COW", "COPY_ON_WRITE").replace("MOR", "MERGE_ON_READ")
    if type_ and type_ != config.table_type.value:
        raise _other(TYPE[0], asked.type, config.table_type.value)
    generator = config.key_generator.removesuffix("_AVRO")
    if asked.generator not in ("", generator) and not {asked.generator, generator} <= _PLAIN:
        raise _other(GENERATOR_CLASS[0], asked.generator, generator)
    for name, value in asked.others.items():
        stored = config.properties.get(name, "")
        if is_layout_property(name) and stored and value.lower() != stored.lower():
            raise _other(name, value, stored)
    _refuse_other_logging(config, asked)
    _refuse_other_merging(config, asked)


def _refuse_other_logging(config: TableConfig, asked: TableDescription) -> None:
    present = {
        CDC_ENABLED: str(captures_changes(config.properties)),
        CDC_LOGGING_MODE: logging_mode(config.properties).value,
    }
    for name, stored in present.items():
        said = asked.others.get(name, stored)
        if said.lower() != stored.lower():
            raise InvalidRequest(
                "other_logging",
                what=f"The options set {name} to {said}.",
                why=f"The table has {stored.lower()}, and a window of changes needs one for all.",
                now="Leave the option out, or write into a new table.",
                setting=name,
            )


def _refuse_other_merging(config: TableConfig, asked: TableDescription) -> None:
    mode = asked.merge_mode.upper().removesuffix("_ORDERING")
    present = config.merge.mode.value.removesuffix("_ORDERING")
    # A payload by event time without its fields leaves the choice to the table.
    is_said = asked.payload is None or asked.ordering
    if mode and is_said and mode != present:
        raise _other(MERGE_MODE[0], asked.merge_mode, config.merge.mode.value)
    partial = PartialMode.NONE if asked.payload is None else asked.payload.partial
    if partial not in (PartialMode.NONE, config.merge.partial):
        raise _other(PAYLOAD[0], "partial updates", config.merge.partial.value)


def _other(setting: str, said: str, present: str) -> InvalidRequest:
    return InvalidRequest(
        "other_identity",
        what=f"The options set {setting} to {said}.",
        why=f"The table has {present or 'none'}; with another one its rows would be others.",
        now="Leave the option out, or write into a new table.",
        setting=setting,
    )


def _first(given: Mapping[str, str], names: Sequence[str]) -> str:
    return next((given[name] for name in names if given.get(name)), "")


def _names(given: Mapping[str, str], names: Sequence[str]) -> list[str]:
    return [name.strip() for name in _first(given, names).split(",") if name.strip()]


def _plain(partition: Sequence[str]) -> list[str]:
    return [name.partition(":")[0] for name in partition]
