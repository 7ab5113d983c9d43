"""Key schemes: how a table's rows get their record keys, for writing and for reading.

A row that is to be written and can have no key is refused. Only tables that store no keys need them
made for reading; the others have the key in each row.

Record keys: how the key columns of a row become its record key.

Keyed rows: what a caller wants to write, with the record key and partition path of each row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.column_types import column_at
from lakewarden.engine.table.config import COMPLEX_GENERATORS, NEW_ENCODING_KEY, TableConfig
from lakewarden.engine.table.keygen.java_dates import Column, java_texts

NULL_PLACEHOLDER = "__null__"
EMPTY_PLACEHOLDER = "__empty__"


def key_texts(rows: pa.Table, fields: Sequence[str]) -> list[pa.Array]:
    """The texts that keys are made of, a column of them for each field."""
    return [_whole(java_texts(_plain(column_at(rows, name)), name)) for name in fields]


def joined_keys(
    texts: Sequence[pa.Array], fields: Sequence[str], *, names_fields: bool
) -> pa.Array:
    """The record key of each row: the value itself, or `name:value` for each field."""
    if not names_fields:
        return texts[0]
    parts: list[object] = []
    for at, (name, text) in enumerate(zip(fields, texts, strict=True)):
        parts += [f"{',' if at else ''}{name}:", _filled(text)]
    return pc.binary_join_element_wise(*parts, "")


def _filled(text: pa.Array) -> pa.Array:
    filled = pc.if_else(pc.equal(text, ""), EMPTY_PLACEHOLDER, text)
    return pc.fill_null(filled, NULL_PLACEHOLDER)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    is_kept = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_kept else column


def _whole(texts: Column) -> pa.Array:
    if isinstance(texts, pa.Array):
        return texts
    return texts.chunk(0) if texts.num_chunks == 1 else texts.combine_chunks()


@dataclass(frozen=True, slots=True, eq=False)
class KeyedRows:
    """Rows in the table's schema (no meta columns), in the order given; keys may repeat.

    `rows` has no columns when the caller gave only keys to delete. `is_delete` says which rows
    delete their key; `is_unconditional` which of those do so whatever the ordering values say.
    """

    rows: pa.Table
    keys: pa.StringArray
    # Dictionary-encoded: int32 codes into the distinct partition paths.
    partitions: pa.DictionaryArray
    is_delete: npt.NDArray[np.bool_]
    is_unconditional: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.keys)

    def partition_paths(self) -> tuple[str, ...]:
        """The distinct partition paths, sorted."""
        return tuple(sorted(self.partitions.dictionary.to_pylist()))

    def take(self, places: npt.NDArray[np.int64]) -> "KeyedRows":
        if _are_neighbours(places):
            first = int(places[0]) if len(places) else 0
            return self._between(first, len(places))
        indices = pa.array(places)
        return KeyedRows(
            self.rows.take(indices),
            self.keys.take(indices),
            self.partitions.take(indices),
            self.is_delete[places],
            self.is_unconditional[places],
        )

    def followed_by(self, more: "KeyedRows") -> "KeyedRows":
        """These rows, and then others; rows without columns have nulls in those of the others."""
        mine = self.rows
        if not mine.num_columns:
            schema = more.rows.schema
            mine = pa.table([pa.nulls(len(self), one.type) for one in schema], schema=schema)
        paths = pa.chunked_array([self.partitions, more.partitions]).unify_dictionaries()
        return KeyedRows(
            pa.concat_tables([mine, more.rows]).combine_chunks(),
            pa.concat_arrays([self.keys, more.keys]),
            paths.combine_chunks(),
            np.concatenate([self.is_delete, more.is_delete]),
            np.concatenate([self.is_unconditional, more.is_unconditional]),
        )

    def _between(self, first: int, count: int) -> "KeyedRows":
        """Rows that stand side by side, without copying them."""
        chosen = slice(first, first + count)
        return KeyedRows(
            self.rows.slice(first, count),
            self.keys.slice(first, count),
            self.partitions.slice(first, count),
            self.is_delete[chosen],
            self.is_unconditional[chosen],
        )


def _are_neighbours(places: npt.NDArray[np.int64]) -> bool:
    """Whether the places go up by one, as those of rows that keep their order do."""
    if not len(places):
        return True
    return int(places[-1] - places[0]) == len(places) - 1 and bool((np.diff(places) == 1).all())


# Generators of Hudi that take a text for a key as it is; what others make is not known.
PLAIN_GENERATORS = ("SIMPLE", "SIMPLE_AVRO", "NON_PARTITION", "NON_PARTITION_AVRO")
# Those that make keys of the columns' values alone, one way or another.
_KNOWN_GENERATORS = frozenset(
    {
        *PLAIN_GENERATORS,
        *COMPLEX_GENERATORS,
        "TIMESTAMP",
        "TIMESTAMP_AVRO",
        "CUSTOM",
        "CUSTOM_AVRO",
    }
)
ENCODING_KEY = "hoodie.table.complex.keygen.encoding"
_FIRST_VERSION_THAT_NAMES = 9


# No key of Hudi's begins so.
_TO_COME = "\x00"
_PLACEHOLDERS = pa.array([NULL_PLACEHOLDER, EMPTY_PLACEHOLDER])


@dataclass(frozen=True, slots=True)
class KeyScheme:
    """From which columns keys are made, and whether they name them: `a:1,b:2`."""

    fields: tuple[str, ...]
    names_fields: bool

    def keys(self, rows: pa.Table, stored: pa.ChunkedArray | None = None) -> pa.StringArray:
        """The record key of each row; a key without any value, or that may be another row's, is
        refused.

        Without fields, a row keeps the key that is stored for it, or will get one.
        """
        if not self.fields:
            return _given_or_to_come(stored, len(rows) if stored is None else len(stored))
        texts = key_texts(rows, self.fields)
        gaps = np.logical_and.reduce([_are_gaps(text) for text in texts])
        if gaps.any():
            raise self._keyless(int(gaps.argmax()), texts)
        if len(texts) > 1:
            self._refuse_ambiguous(texts)
        return joined_keys(texts, self.fields, names_fields=self.names_fields)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the fields are in; a field may be inside of one."""
        return tuple(dict.fromkeys(name.split(".")[0] for name in self.fields))

    def keys_of_stored(self, rows: pa.Table) -> pa.Array:
        """The record keys of rows that were written, where files do not store them."""
        texts = key_texts(rows, self.fields)
        return joined_keys(texts, self.fields, names_fields=self.names_fields)

    def _refuse_ambiguous(self, texts: list[pa.Array]) -> None:
        """Refuse values with which the key's text can be taken apart in two ways.

        Keys of several columns are read up to the next column's name: a value that holds it ends
        too early. The last column's may. Nulls and empty texts have placeholders, which are no
        values then.
        """
        for at, (name, text) in enumerate(zip(self.fields, texts, strict=True)):
            is_taken = pc.is_in(text, value_set=_PLACEHOLDERS)
            if at + 1 < len(texts):
                border = f",{self.fields[at + 1]}:"
                is_taken = pc.or_(is_taken, pc.fill_null(pc.match_substring(text, border), False))
            if pc.any(is_taken).as_py():
                raise self._ambiguous(name, pc.index(is_taken, True).as_py(), texts)

    def _ambiguous(self, name: str, row: int, texts: list[pa.Array]) -> InvalidRequest:
        values = [text[row].as_py() for text in texts]
        shown = ", ".join(
            f"{field} = {value!r:.100}" for field, value in zip(self.fields, values, strict=True)
        )
        return InvalidRequest(
            "ambiguous_record_key",
            what=f"Row {row} has no unique record key: {shown}.",
            why=(
                f"Another row could get the same key text: {name!r} contains the next "
                "column's name, or the placeholder for nulls or empty texts."
            ),
            now=f"Nothing was written. Change the value of {name}, or leave the row out.",
            row=row,
            column=name,
        )

    def _keyless(self, row: int, texts: list[pa.Array]) -> InvalidRequest:
        found = "null" if not texts[0][row].is_valid else "empty"
        columns = ", ".join(self.fields)
        return InvalidRequest(
            "null_record_key",
            what=f"Row {row} has no record key: {columns} {'is' if len(texts) == 1 else 'are'}"
            f" {found if len(texts) == 1 else 'all null or empty'}.",
            why="No write could update or delete a row without a key.",
            now="Nothing was written. Fill the column, or leave the row out.",
            row=row,
            column=columns,
        )


def keyed_at(instant: str, rows: KeyedRows, config: TableConfig) -> KeyedRows:
    """The rows of a write, each with its key; those that had none get it by the write's instant."""
    if config.key_fields:
        return rows
    return replace(rows, keys=with_generated_keys(rows.keys, instant))


def with_generated_keys(keys: pa.StringArray, instant: str) -> pa.StringArray:
    """The keys, with those that are to come: of the instant that brings the rows, as in Hudi."""
    is_to_come = pc.starts_with(keys, _TO_COME)
    if not pc.any(is_to_come).as_py():
        return keys
    numbers = pc.cast(pa.array(np.arange(len(keys))), pa.string())
    return pc.if_else(is_to_come, pc.binary_join_element_wise(instant, "0", numbers, "_"), keys)


def _given_or_to_come(stored: pa.ChunkedArray | None, count: int) -> pa.StringArray:
    numbers = pc.cast(pa.array(np.arange(count)), pa.string())
    to_come = pc.binary_join_element_wise(_TO_COME, numbers, "")
    return to_come if stored is None else pc.coalesce(stored.combine_chunks(), to_come)


def key_scheme(config: TableConfig) -> KeyScheme:
    """How the table's record keys are made; without fields each row gets a key of its own."""
    several = len(config.key_fields) > 1
    return KeyScheme(config.key_fields, several or names_only_field(config))


def has_known_keys(config: TableConfig) -> bool:
    """Whether a key tells the values of its columns, and these tell the key."""
    return bool(config.key_fields) and config.key_generator in _KNOWN_GENERATORS


def key_column(config: TableConfig, columns: pa.Schema) -> str | None:
    """The text column that is the record key, letter for letter, if the rows store keys too.

    Where both are wanted, one need not be read.
    """
    if len(config.key_fields) != 1 or not config.has_meta_fields:
        return None
    (name,) = config.key_fields
    is_text = name in columns.names and columns.field(name).type == pa.string()
    is_plain = config.key_generator in PLAIN_GENERATORS
    return name if is_text and is_plain else None


def names_only_field(config: TableConfig, *, is_assumed: bool | None = None) -> bool:
    """Releases differ over complex keys of one column; tables say which way theirs went."""
    if config.key_generator not in COMPLEX_GENERATORS:
        return False
    encoding = config.properties.get(ENCODING_KEY, "").strip().upper()
    if encoding:
        return encoding != "VALUE_ONLY"
    if config.version >= _FIRST_VERSION_THAT_NAMES:
        return True
    stated = config.properties.get(NEW_ENCODING_KEY, "").strip().lower()
    if stated:
        return stated != "true"
    if is_assumed is not None:
        return is_assumed
    raise InvalidRequest(
        "ambiguous_complex_keys",
        what=f"The keys of this table may be `{config.key_fields[0]}:value` or `value`.",
        why=(
            "Releases 0.14.1 to 1.0.2 wrote no column name, and version "
            f"{config.version} does not record the release."
        ),
        now=(
            f"Look at a key in the table. For plain values set {NEW_ENCODING_KEY} to true, "
            "otherwise to false."
        ),
    )


def _are_gaps(text: pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(pc.equal(pc.binary_length(text), 0), True), dtype=bool)
