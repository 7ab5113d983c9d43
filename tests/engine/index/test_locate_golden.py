"""In tables by Java, every key is located in the file group that a reader finds it in."""

import numpy as np
import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.index.kinds import Buckets, IndexChoice, IndexKind
from lakewarden.engine.index.locate import locate
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.table_state import TableState
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.keyed_rows import KeyedRows
from lakewarden.engine.table.schema import FILE_NAME, PARTITION_PATH, RECORD_KEY
from tests.golden_tables import GOLDEN_TABLES, GoldenTable

WITH_KEYS = tuple(name for name in GOLDEN_TABLES if "virtual_keys" not in name)
IN_FILES = (
    IndexKind.SIMPLE,
    IndexKind.GLOBAL_SIMPLE,
    IndexKind.BLOOM,
    IndexKind.GLOBAL_BLOOM,
)


def as_keyed(rows: pa.Table) -> KeyedRows:
    nothing = np.zeros(len(rows), np.bool_)
    return KeyedRows(
        rows,
        rows.column(RECORD_KEY).combine_chunks(),
        rows.column(PARTITION_PATH).combine_chunks().dictionary_encode(),
        nothing,
        nothing,
    )


def state_of(golden: GoldenTable, name: str) -> TableState:
    return TableState(open_storage(Location(str(golden(name)))))


def check_found(golden: GoldenTable, name: str, choice: IndexChoice) -> None:
    rows = Table(golden(name)).read_arrow()
    matches = locate(state_of(golden, name), as_keyed(rows), choice, LocalExecutor(1))
    found = {
        (row, matches.slices[at].partition, matches.slices[at].file_id)
        for row, at in zip(matches.rows.tolist(), matches.at.tolist(), strict=True)
    }
    for at, row in enumerate(rows.select([PARTITION_PATH, FILE_NAME]).to_pylist()):
        assert (at, row[PARTITION_PATH], row[FILE_NAME].partition("_")[0]) in found


@pytest.mark.parametrize("kind", IN_FILES)
@pytest.mark.parametrize("name", WITH_KEYS)
def test_every_key_is_found_where_its_row_is_read(
    name: str, kind: IndexKind, golden: GoldenTable
) -> None:
    check_found(golden, name, IndexChoice(kind))


@pytest.mark.parametrize(("name", "count"), [("mor_bucket_simple", 4), ("mor_nbcc", 2)])
def test_every_key_is_in_the_group_of_its_bucket(
    name: str, count: int, golden: GoldenTable
) -> None:
    check_found(
        golden, name, IndexChoice(IndexKind.BUCKET, buckets=Buckets(("id",), count, ("id",)))
    )


def test_another_count_of_buckets_is_refused(golden: GoldenTable) -> None:
    choice = IndexChoice(IndexKind.BUCKET, buckets=Buckets(("id",), 3, ("id",)))
    with pytest.raises(InvalidRequest) as refused:
        check_found(golden, "mor_bucket_simple", choice)
    assert refused.value.code == "not_in_buckets"
