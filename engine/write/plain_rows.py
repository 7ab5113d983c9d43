"""Plain rows: dictionaries, whose numbers have no width of their own.

Python has one kind of whole number and one of fractions. Those that fit take the type of the
table's column; taken for the widest type, they would widen the column of everybody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.write.request import Incoming


@dataclass(frozen=True, slots=True, eq=False)
class PlainRows:
    """Rows as dictionaries; what a row lacks is null."""

    rows: Sequence[Mapping[str, object]]

    def __call__(self, state: Snapshot) -> Incoming:
        return Incoming(self.table(state.schema().columns))

    @property
    def names(self) -> tuple[str, ...]:
        """All names that occur, in the order of their first occurrence."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))

    def table(self, wanted: pa.Schema) -> pa.Table:
        """The rows in columns, of the wanted types as far as these take every value as it is."""
        columns = {}
        for name in self.names:
            values = [row.get(name) for row in self.rows]
            place = wanted.get_field_index(name)
            columns[name] = _column(values, wanted.field(place).type if place >= 0 else None)
        return pa.table(columns)


def _column(values: Sequence[object], wanted: pa.DataType | None) -> pa.Array:
    try:
        found = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise unreadable("list", error) from None
    if wanted is None or found.type == wanted:
        return found
    if types.is_floating(found.type) and types.is_floating(wanted):
        narrow = pa.array(values, wanted)
        # What is too large for the narrow type has become infinite.
        return narrow if pc.is_inf(narrow).equals(pc.is_inf(found)) else found
    if not _same_up_to_widths(found.type, wanted):
        return found
    try:
        return pa.array(values, wanted)
    except (pa.ArrowInvalid, OverflowError):
        return found


def _same_up_to_widths(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether two types are the same up to the widths of the whole numbers in them."""
    if types.is_integer(found) and types.is_integer(wanted):
        return True
    if types.is_list(found) and types.is_list(wanted):
        return _same_up_to_widths(found.value_type, wanted.value_type)
    if types.is_struct(found) and types.is_struct(wanted):
        inner = {field.name: field.type for field in wanted}
        return inner.keys() == {field.name for field in found} and all(
            _same_up_to_widths(field.type, inner[field.name]) for field in found
        )
    return bool(found == wanted)


def unreadable(kind: str, error: pa.ArrowException) -> InvalidRequest:
    """What Arrow says of rows that it can't put into columns."""
    return InvalidRequest(
        "unreadable_rows",
        what=f"The rows in this {kind} do not form columns.",
        why=str(error).partition("\n")[0],
        now="Give every value of a column the same type, or pass an Arrow table.",
    )
