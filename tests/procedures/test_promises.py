"""Arguments and columns stand where callers of Hudi, and readers of our pages, expect them."""

import pytest

from lakewarden.procedures.registry import procedure_named
from tests.procedures.promises import PROMISES, Promise


@pytest.mark.parametrize(("name", "promise"), PROMISES.items(), ids=PROMISES)
def test_positions_are_as_promised(name: str, promise: Promise) -> None:
    procedure = procedure_named(name)
    arguments, columns = promise.arguments.split(), promise.columns.split()
    assert [one.name for one in procedure.parameters][: len(arguments)] == arguments
    assert [one.name for one in procedure.columns][: len(columns)] == columns
    assert {"table", "path"} <= {one.name for one in procedure.parameters}
