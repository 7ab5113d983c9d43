"""Partitions: statements name them by the values of their columns, the table by their paths."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa

from lakewarden.engine.file_groups.file_names import PARTITION_METADATA
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.index.locate import latest_file_slices
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.config import PartitionKind, TableConfig
from lakewarden.engine.table.keygen.partition_paths import partition_paths, timestamp_texts
from lakewarden.engine.write.files.write_groups import ensure_partition
from lakewarden.sql_ext.tables.reading import MICROS_PREFIX
from lakewarden.table import Table

V = TypeVar("V")
Values = Mapping[str, str | None]
# Of partitions that no write has made.
NO_INSTANT = "00000000000000000"


def shown(table: Table, values: Values) -> list[str]:
    """The paths of the partitions that have these values, in order; no values mean all."""
    if not table.config.partitions.fields:
        return []
    return _named(table.state(), _there(table), _checked(table.config, values))


def having(state: Snapshot, values: Mapping[str, object]) -> tuple[str, ...]:
    """The paths of the partitions with rows that have these values of some of the columns."""
    there = sorted({slice_.partition for slice_ in latest_file_slices(state, None)})
    checked = _checked(state.config, values)
    for path in there:
        for name in set(checked) - set(state.config.partitions.values(path)):
            raise _untold(name, f"The path {path} has more levels than columns")
    return tuple(_named(state, there, checked))


def add(table: Table, partitions: Sequence[Values], *, if_not_exists: bool) -> None:
    """Make folders that are partitions, as Hudi does: no commit, and no rows."""
    storage, there = table.state().storage, set(_there(table))
    for path in sorted({_path(table, _checked(table.config, values)) for values in partitions}):
        if path not in there and storage.stat(f"{path}/{PARTITION_METADATA}") is None:
            ensure_partition(storage, path, NO_INSTANT)
        elif not if_not_exists:
            raise InvalidRequest(
                "partition_exists",
                what=f"The table has the partition {path} already.",
                why="A partition is made once, by a write of its rows or by ADD PARTITION.",
                now="Use ADD IF NOT EXISTS PARTITION.",
                partition=path,
            )


def _path(table: Table, values: Values) -> str:
    """The path of the partition with these values; each column has to have one."""
    fields = [field.name for field in table.config.partitions.fields]
    missing = [name for name in fields if name not in values]
    if missing or not fields:
        raise InvalidRequest(
            "incomplete_partition",
            what="The statement does not name one partition.",
            why=f"It gives no value of {missing[0]}."
            if missing
            else "The table has no partition columns.",
            now=f"Give a value of each partition column: {_list(fields)}.",
        )
    types = {name: table.schema.field(name).type for name in fields}
    try:
        row = pa.table({name: _array(values[name], types[name]) for name in fields})
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequest(
            "bad_partition_value",
            what=f"A value of the partition does not fit its column: {error}.",
            why=f"The columns are {_list(f'{name} {type_}' for name, type_ in types.items())}.",
            now="Correct the value.",
        ) from None
    return str(partition_paths(row, table.config).to_pylist()[0])


def drop(table: Table, partitions: Sequence[Values], *, if_exists: bool) -> None:
    """Delete everything in some partitions; values of some of the columns mean several."""
    there = _there(table)
    paths: list[str] = []
    for values in partitions:
        assert values, "no values at all would mean every partition"
        found = _named(table.state(), there, _checked(table.config, values))
        if not found and not if_exists:
            raise _unknown(values, there)
        paths += found
    if paths:
        table.drop_partitions(sorted(set(paths)))


def _there(table: Table) -> list[str]:
    """The paths of the partitions that have files, in order; of an empty table, its folders.

    Folders of a table that is written stay when their partitions are dropped.
    """
    state = table.state()
    if not state.timeline.active.instants:
        return list(StorageListing(state.storage).partitions())
    return sorted({slice_.partition for slice_ in table.file_slices()})


def _named(state: Snapshot, there: Sequence[str], values: Mapping[str, object]) -> list[str]:
    schema, scheme = state.schema().columns, state.config.partitions
    found = []
    for path in there:
        reported = scheme.values(path)
        if all(
            name in reported and _is_same(reported[name], value, schema.field(name).type)
            for name, value in values.items()
        ):
            found.append(path)
    return found


def _is_same(reported: str | None, wanted: object, type_: pa.DataType) -> bool:
    if reported is None or wanted is None or reported == wanted:
        return reported == wanted
    if pa.types.is_timestamp(type_) and not _is_plain_text(wanted):
        moment = _array(wanted, type_) if isinstance(wanted, str) else pa.array([wanted], type_)
        return unquote(reported) == unquote(timestamp_texts(moment)[0])
    try:
        return bool(pa.scalar(reported).cast(type_) == pa.scalar(wanted).cast(type_))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False


def _is_plain_text(value: object) -> bool:
    return isinstance(value, str) and not value.startswith(MICROS_PREFIX)


def _array(text: str | None, type_: pa.DataType) -> pa.Array:
    """The value that a statement names; moments come as Spark keeps them."""
    if pa.types.is_timestamp(type_) and text is not None and text.startswith(MICROS_PREFIX):
        micros = pa.array([int(text.removeprefix(MICROS_PREFIX))], pa.int64())
        return micros.cast(pa.timestamp("us", type_.tz)).cast(type_)
    return pa.array([text], pa.string()).cast(type_)


def _checked(config: TableConfig, values: Mapping[str, V]) -> dict[str, V]:
    """The values by the names of the table's columns; paths have to tell each from the others."""
    fields = {field.name.lower(): field for field in config.partitions.fields}
    unknown = [name for name in values if name.lower() not in fields]
    if unknown:
        raise InvalidRequest(
            "unknown_partition_column",
            what=f"The table is not partitioned by {unknown[0]}.",
            why=f"Its partition columns are {_list(field.name for field in fields.values())}.",
            now="Name some or all of these.",
            column=unknown[0],
        )
    named = {fields[name.lower()].name: value for name, value in values.items()}
    untold = [name for name in named if fields[name.lower()].kind is not PartitionKind.SIMPLE]
    if untold:
        why = f"Partition paths hold times that are computed from {untold[0]}, not its values"
        raise _untold(untold[0], why)
    return named


def _untold(column: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        "untold_partition_value",
        what=f"Values of {column} do not name partitions.",
        why=f"{why}.",
        now="CALL drop_partition with paths from SHOW PARTITIONS.",
        column=column,
    )


def _unknown(values: Values, there: Sequence[str]) -> InvalidRequest:
    named = ", ".join(f"{name} = {value!r}" for name, value in values.items())
    return InvalidRequest(
        "unknown_partition",
        what=f"The table has no partition with {named}.",
        why=f"It has {len(there)} partitions" + (f", such as {there[-1]!r}." if there else "."),
        now="Use IF EXISTS, or CALL drop_partition with paths from SHOW PARTITIONS.",
    )


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
