"""Preparation: incoming rows in the table's schema, each with its key and partition path.

Everything that can be wrong with rows is found here, before anything is written.

Null places: where rows hold a null that their type does not let them hold, at any depth.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.merge.entries import have_default_ordering
from lakewarden.engine.read.merge.spec import OPERATION_FIELD, marked_deleted
from lakewarden.engine.table.change_logging import captures_changes, logging_mode
from lakewarden.engine.table.column_types import table_type, widened
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.keygen.key_scheme import KeyedRows, key_scheme
from lakewarden.engine.table.keygen.partition_paths import partition_paths
from lakewarden.engine.table.keygen.virtual_keys import refuse_unsupported_virtual_keys
from lakewarden.engine.table.merge_rules import MergeRules
from lakewarden.engine.table.schema import META_COLUMNS, RECORD_KEY, TableSchema
from lakewarden.engine.write.rows.evolve import not_nullable
from lakewarden.engine.write.rows.exact import Misfit, exact, plain


def null_place(values: pa.Array, field: pa.Field, place: str) -> str | None:
    """The dotted place of a null that must not be; None where all is well."""
    if not field.nullable and values.null_count:
        return place
    for inner, inner_values, inner_place in _inside(values, field.type, place):
        found = null_place(inner_values, inner, inner_place)
        if found is not None:
            return found
    return None


def _inside(
    values: pa.Array, type_: pa.DataType, place: str
) -> Iterator[tuple[pa.Field, pa.Array, str]]:
    """What the values hold, leaving out what stands below a null; only where a null matters."""
    if not _is_strict(type_):
        return
    whole = values.drop_null()
    if pa.types.is_struct(type_):
        for number, inner in enumerate(type_):
            yield inner, whole.field(number), f"{place}.{inner.name}"
    elif pa.types.is_list(type_):
        yield type_.value_field, whole.flatten(), f"{place}[]"
    elif pa.types.is_map(type_):
        pair = {"key": whole.type.key_type, "value": whole.type.item_type}
        entries = whole.cast(pa.list_(pa.struct(pair))).flatten()
        yield type_.item_field, entries.field(1), f"{place}[]"


def _is_strict(type_: pa.DataType) -> bool:
    """Whether anything inside the type may not be null; keys of maps never are."""
    if pa.types.is_struct(type_):
        return any(not inner.nullable or _is_strict(inner.type) for inner in type_)
    if pa.types.is_list(type_):
        return not type_.value_field.nullable or _is_strict(type_.value_type)
    if pa.types.is_map(type_):
        return not type_.item_field.nullable or _is_strict(type_.item_type)
    return False


CHUNKS_MAX = 256


def keyed_rows(
    rows: pa.Table,
    config: TableConfig,
    schema: TableSchema,
    *,
    deletes: bool,
    options: Mapping[str, str] | None = None,
    partition_matters: bool = True,
) -> KeyedRows:
    """The rows, ready to be routed; `schema` is the evolved one, which has all their columns.

    Rows of a delete need only the columns that keys and partition paths are made of; where an
    index knows keys over all partitions, those of the path may be absent, too.
    """
    refuse_unwritable(config)
    stored = None
    if not config.key_fields and RECORD_KEY in rows.column_names:
        stored = rows.column(RECORD_KEY).cast(pa.string())
    rows = rows.drop_columns([name for name in rows.column_names if name in META_COLUMNS])
    if deletes:
        return _deleting(rows, stored, config, schema, options, partition_matters=partition_matters)
    assert set(rows.column_names) <= set(schema.columns.names)
    table = fitted(rows, schema.columns)
    _refuse_nulls(table, schema)
    _check_ordering(table, config)
    nothing = np.zeros(len(table), dtype=bool)
    keyed = KeyedRows(
        table,
        key_scheme(config).keys(table, stored),
        partition_paths(table, config, options),
        nothing,
        nothing,
    )
    return with_deletes(keyed, marked_deleted(table, config.merge), config.merge)


def with_deletes(rows: KeyedRows, is_delete: npt.NDArray[np.bool_], rules: MergeRules) -> KeyedRows:
    """The rows, of which these delete their keys, too, as far as their ordering values allow it."""
    if not is_delete.any():
        return rows
    ordering = [column.combine_chunks() for column in rules.ordering(rows.rows)]
    return replace(
        rows,
        is_delete=rows.is_delete | is_delete,
        is_unconditional=rows.is_unconditional | (is_delete & have_default_ordering(ordering)),
    )


def _deleting(
    rows: pa.Table,
    stored: pa.ChunkedArray | None,
    config: TableConfig,
    schema: TableSchema,
    options: Mapping[str, str] | None,
    *,
    partition_matters: bool,
) -> KeyedRows:
    present = set(rows.column_names)
    table = fitted(rows, pa.schema([field for field in schema.columns if field.name in present]))
    if stored is None and not config.key_fields:
        raise InvalidRequest(
            "missing_generated_keys",
            what=f"The rows have no {RECORD_KEY}.",
            why="The table has no key columns: Hudi generates its record keys.",
            now=f"Read {RECORD_KEY} with the rows, or delete by a filter.",
        )
    if stored is not None:
        # Its length is that of the rows, which may have no other columns.
        table = pa.table({RECORD_KEY: stored, **{n: table.column(n) for n in table.column_names}})
    keys = key_scheme(config).keys(table, stored)
    if partition_matters or has_partition(present, config):
        paths = partition_paths(table, config, options)
    else:
        paths = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(len(keys), np.int32)), pa.array([""])
        )
    everything = np.ones(len(keys), dtype=bool)
    return KeyedRows(pa.table({}), keys, paths, everything, everything)


def has_partition(present: set[str], config: TableConfig) -> bool:
    return all(field.name.split(".")[0] in present for field in config.partitions.fields)


def fitted(rows: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Rows in the wanted types and order, in few pieces; a column they lack is null."""
    present = set(rows.column_names)
    columns = [
        _column(rows.column(field.name), field)
        if field.name in present
        else pa.chunked_array([pa.nulls(len(rows), field.type)])
        for field in wanted
    ]
    table = pa.table(columns, schema=wanted)
    # Rows are picked by number later on, which is slow where a column is in many pieces; but where
    # it is in few, rows that fit as they are need not be copied.
    has_few = all(column.num_chunks <= CHUNKS_MAX for column in table.columns)
    return table if has_few else table.combine_chunks()


def _column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    if not pa.types.is_null(column.type):
        # Rows of a delete have not been compared with the table's types.
        widened(field.type, table_type(column.type, field.name), field.name)
    try:
        return exact(plain(column, field.name), field.type)
    except Misfit as misfit:
        raise _no_place(field, str(misfit.value), misfit.row) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _no_place(field, str(error).splitlines()[0], None) from None


def _no_place(field: pa.Field, found: str, row: int | None) -> InvalidRequest:
    where = "" if row is None else f" (row {row})"
    return InvalidRequest(
        "value_does_not_fit",
        what=f"A value of column {field.name} does not fit {field.type}: {found}{where}.",
        why="Lakewarden casts values to the table's types only without loss.",
        now="Nothing was written. Correct the value, or pass evolve=True to widen the column.",
        column=field.name,
        type=str(field.type),
        value=found,
    )


def _refuse_nulls(table: pa.Table, schema: TableSchema) -> None:
    strict = not_nullable(schema)
    for field in table.schema:
        for chunk in table.column(field.name).chunks:
            place = null_place(chunk, field.with_nullable(field.name not in strict), field.name)
            if place is not None:
                raise InvalidRequest(
                    "null_not_allowed",
                    what=f"Column {place} holds nulls.",
                    why="The table's schema does not allow nulls in it.",
                    now="Nothing was written. Fill the column.",
                    column=place,
                )


def _check_ordering(table: pa.Table, config: TableConfig) -> None:
    missing = [name for name in config.merge.ordering_names if name not in table.column_names]
    if missing:
        raise InvalidRequest(
            "missing_ordering_column",
            what=f"The rows have no column {missing[0]!r}.",
            why="The table orders rows of one key by it.",
            now="Add the column.",
            column=missing[0],
        )


def refuse_unwritable(config: TableConfig) -> None:
    """Refuse a table that has something which no file of ours would have."""
    properties = config.properties
    refuse_unsupported_virtual_keys(config)
    if config.drops_partition_columns:
        how = "leaves partition columns out of its files"
        raise _unwritable("dropped_partition_columns", how)
    if config.base_format != "PARQUET":
        raise _unwritable("base_file_format", "has base files of another format")
    if captures_changes(properties):
        logging_mode(properties)
    if properties.get("hoodie.allow.operation.metadata.field", "").lower() == "true":
        raise _unwritable("operation_field", f"has the meta column {OPERATION_FIELD}")


def _unwritable(code: str, how: str) -> InvalidRequest:
    return InvalidRequest(
        f"unsupported_{code}",
        what=f"The table {how}; Lakewarden cannot write such tables.",
        why="Other engines would miss data that they expect in the files.",
        now="Write it with Hudi.",
    )
