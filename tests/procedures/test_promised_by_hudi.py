"""Positions, columns and types are those that Hudi's users know; what is ours comes after them."""

import pytest

from lakewarden.procedures.binding import parameter_named
from lakewarden.procedures.registry import procedure_named
from tests.procedures.promised_by_hudi import PROMISED, ROW_TYPES


@pytest.mark.parametrize("name", PROMISED)
def test_what_hudi_promises_is_kept(name: str) -> None:
    arguments, columns = PROMISED[name]
    procedure = procedure_named(name)
    for place, argument in enumerate(arguments.split()):
        assert parameter_named(procedure, argument) is procedure.parameters[place]
    promised = [tuple(column.split()) for column in columns.split(";")]
    given = [(one.name, str(one.type)) for one in procedure.columns][: len(promised)]
    assert given == [(column, ROW_TYPES[type_]) for column, type_ in promised]
    assert {"table", "path"} <= {one.name for one in procedure.parameters}
