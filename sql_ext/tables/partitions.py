"""Partitions: statements name them by the values of their columns, the table by their paths."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.partitions import PartitionKind
from lakewarden.table import Table

Values = Mapping[str, str | None]


def shown(table: Table, values: Values) -> list[str]:
    """The paths of the partitions that have these values, in order; no values mean all."""
    if not table.config.partitions.fields:
        raise InvalidRequest(
            "not_partitioned",
            what="The table has no partitions.",
            why="It has no partition columns.",
            now="lakewarden_files lists its files.",
        )
    return _named(table, _there(table), _checked(table, values))


def drop(table: Table, partitions: Sequence[Values], *, if_exists: bool) -> None:
    """Delete everything in some partitions; values of some of the columns mean several."""
    there = _there(table)
    paths: list[str] = []
    for values in partitions:
        assert values, "no values at all would mean every partition"
        found = _named(table, there, _checked(table, values))
        if not found and not if_exists:
            raise _unknown(values, there)
        paths += found
    if paths:
        table.drop_partitions(sorted(set(paths)))


def _there(table: Table) -> list[str]:
    """The paths of the partitions that have files, in order."""
    return sorted({slice_.partition for slice_ in table.file_slices()})


def _named(table: Table, there: Sequence[str], values: Values) -> list[str]:
    schema, scheme = table.schema, table.config.partitions
    found = []
    for path in there:
        reported = scheme.values(path)
        if all(
            name in reported and _is_same(reported[name], value, schema.field(name).type)
            for name, value in values.items()
        ):
            found.append(path)
    return found


def _is_same(reported: str | None, wanted: str | None, type_: pa.DataType) -> bool:
    if reported is None or wanted is None or reported == wanted:
        return reported == wanted
    try:
        return bool(pa.scalar(reported).cast(type_) == pa.scalar(wanted).cast(type_))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False


def _checked(table: Table, values: Values) -> Values:
    """The values by the names of the table's columns; paths have to tell each from the others."""
    fields = {field.name.lower(): field for field in table.config.partitions.fields}
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
        raise InvalidRequest(
            "untold_partition_value",
            what=f"Values of {untold[0]} do not name partitions.",
            why=f"Partition paths hold times that are computed from {untold[0]}, not its values.",
            now="CALL drop_partition with paths from SHOW PARTITIONS.",
            column=untold[0],
        )
    return named


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
