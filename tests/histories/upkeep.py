"""Upkeep: indexes and the metadata table, made and dropped."""

from dataclasses import dataclass, replace
from random import Random

from lakewarden import Table
from tests.all_kinds import BLOOM, BY_DAY, BY_LOW, BY_N, BY_NAME, give
from tests.histories.operation import Call
from tests.histories.table_model import Past

INDEXES = ("record_index", "column_stats", "partition_stats")


@dataclass(frozen=True, slots=True)
class CreateIndex:
    name: str = "create index"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        index = chance.choice(INDEXES)
        if not past.has_metadata:
            return None
        if index == "partition_stats" and not past.kind.is_partitioned:
            return None
        within = past.kind.is_partitioned and not past.kind.is_global
        options = {"isPartitioned": "true"} if index == "record_index" and within else {}
        columns = {
            "record_index": tuple(past.kind.shown(("id",))),
            "column_stats": ("v", "name", "d"),
        }.get(index, ())
        return Call(
            text=f"create {index} {options or ''}",
            act=lambda table: _create(table, index, columns, options),
            is_repeated=True,
        )


def _create(table: Table, index: str, columns: tuple[str, ...], options: dict[str, str]) -> object:
    if index == "partition_stats" and not _has(table, "column_stats"):
        return None
    return table.create_index(index, columns, index, options, if_not_exists=True)


@dataclass(frozen=True, slots=True)
class DropIndex:
    name: str = "drop index"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        index = chance.choice(INDEXES)
        if not past.has_metadata:
            return None
        return Call(
            text=f"drop {index}",
            act=lambda table: table.drop_index(index) if _has(table, index) else None,
            is_repeated=True,
        )


@dataclass(frozen=True, slots=True)
class CreateRowIndex:
    """An index of filters, values or expressions; one of values needs each key once."""

    name: str = "create row index"
    weight: int = 3

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        partition = chance.choice((BLOOM, BY_NAME, BY_N, BY_DAY, BY_LOW))
        needs_once = partition in (BY_NAME, BY_N)
        if not past.has_metadata or (needs_once and not past.kind.has_keys_once):
            return None
        return Call(
            text=f"create {partition}",
            act=lambda table: _give(table, partition),
            is_repeated=True,
        )


def _give(table: Table, partition: str) -> None:
    if not table.config.has_metadata(partition):
        give(table, (partition,))


@dataclass(frozen=True, slots=True)
class DropRowIndex:
    name: str = "drop row index"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        partition = chance.choice((BLOOM, BY_NAME, BY_N, BY_DAY, BY_LOW))
        if not past.has_metadata:
            return None
        return Call(
            text=f"drop {partition}",
            act=lambda table: (
                table.drop_index(partition) if table.config.has_metadata(partition) else None
            ),
            is_repeated=True,
        )


def _has(table: Table, index: str) -> bool:
    return index in {one.name for one in table.indexes()}


@dataclass(frozen=True, slots=True)
class CreateMetadata:
    name: str = "create metadata table"
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        def effect(past: Past) -> None:
            past.has_metadata = True

        if past.has_metadata:
            return None
        return Call(
            text="create metadata table",
            act=lambda table: table.create_metadata_table(),
            effect=effect,
            is_repeated=True,
        )


@dataclass(frozen=True, slots=True)
class DeleteMetadata:
    name: str = "delete metadata table"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        def effect(past: Past) -> None:
            past.has_metadata = False

        if not past.has_metadata:
            return None
        return Call(
            text="delete metadata table",
            act=lambda table: table.delete_metadata_table(),
            effect=effect,
            is_repeated=True,
        )


@dataclass(frozen=True, slots=True)
class SetIndex:
    """Another index that takes the same rows for one row."""

    name: str = "set index"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        others = {
            "SIMPLE": "BLOOM",
            "BLOOM": "SIMPLE",
            "GLOBAL_SIMPLE": "GLOBAL_BLOOM",
            "GLOBAL_BLOOM": "GLOBAL_SIMPLE",
        }
        index = others.get(past.kind.index)
        if index is None:
            return None

        def effect(past: Past) -> None:
            past.kind = replace(past.kind, index=index)

        return Call(
            text=f"set {index}",
            act=lambda table: table.set_index(index),
            effect=effect,
            is_repeated=True,
        )
