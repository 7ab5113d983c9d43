"""Changed rows: what Spark's plan of an UPDATE or MERGE says of each row, as a change set.

The plan gives each row an operation, the values it shall have, and those it was found by.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakewarden.engine.table.schema import RECORD_KEY
from lakewarden.engine.write.change_set import ChangeSet

OPERATION = "__operation"
ORIGINAL = "__original_"
# The numbers by which Spark's rewritten plans tell what becomes of a row.
DELETE, UPDATE = 1, 2


def originals(names: Sequence[str]) -> list[str]:
    """The columns by whose old values rows were found."""
    return [name for name in names if name.startswith(ORIGINAL)]


def change_set(rows: pa.Table, columns: pa.Schema) -> ChangeSet:
    """The rows of a plan by what becomes of them."""
    operation = np.asarray(rows.column(OPERATION))
    is_gone, is_old = pa.array(operation == DELETE), pa.array(operation == UPDATE)
    is_added = pa.array((operation != DELETE) & (operation != UPDATE))
    found = originals(rows.column_names)
    old = rows.select(found).rename_columns([name.removeprefix(ORIGINAL) for name in found])
    new = rows.select([name for name in rows.column_names if name in columns.names])
    if RECORD_KEY in old.column_names:
        # Keys that Hudi generated are in no column of the rows; a new row gets one.
        new = new.append_column(RECORD_KEY, old.column(RECORD_KEY))
    return ChangeSet(
        gone=old.filter(is_gone),
        old=old.filter(is_old),
        new=new.filter(is_old),
        added=new.filter(is_added),
    )
