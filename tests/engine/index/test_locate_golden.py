"""In tables by Java, every key is located in the file group that a reader finds it in."""

import numpy as np
import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import replace
from lakewarden.engine.formats.instant_metadata.replace import ReplaceCommitMetadata
from lakewarden.engine.index.kinds import Buckets, IndexChoice, IndexKind
from lakewarden.engine.index.locate import locate
from lakewarden.engine.index.settings import record_index_kind
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.run.executor import LocalExecutor
from lakewarden.engine.snapshot import Snapshot, load_snapshot
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.keygen.key_scheme import KeyedRows
from lakewarden.engine.table.schema import FILE_NAME, PARTITION_PATH, RECORD_KEY
from tests.engine.index.small_tables import keyed_rows
from tests.golden_tables import GOLDEN_TABLES, GoldenTable

WITH_KEYS = tuple(name for name in GOLDEN_TABLES if "virtual_keys" not in name)
WITH_RECORD_INDEX = (
    "cow_record_index_partitioned",
    "mor_record_index_global",
    "mor_secondary_index",
    "v8_mor_by_102",
    "v9_mor_by_111",
    "v9_upgraded_from_v8",
)
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


def state_of(golden: GoldenTable, name: str) -> Snapshot:
    return load_snapshot(open_storage(Location(str(golden(name)))))


def check_found(golden: GoldenTable, name: str, selection: IndexChoice) -> None:
    rows = Table(golden(name)).read_arrow()
    matches = locate(state_of(golden, name), as_keyed(rows), selection, LocalExecutor(1))
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
    selection = IndexChoice(IndexKind.BUCKET, buckets=Buckets(("id",), 3, ("id",)))
    with pytest.raises(InvalidRequest) as refused:
        check_found(golden, "mor_bucket_simple", selection)
    assert refused.value.code == "not_in_buckets"


@pytest.mark.parametrize("name", WITH_RECORD_INDEX)
def test_the_record_index_knows_every_key(name: str, golden: GoldenTable) -> None:
    kind = record_index_kind(state_of(golden, name))
    assert kind is not None
    check_found(golden, name, IndexChoice(kind))


def test_an_entry_that_names_a_replaced_group_is_forgotten(golden_copy: GoldenTable) -> None:
    folder = golden_copy("mor_record_index_global")
    rows, storage = Table(folder).read_arrow(), open_storage(Location(str(folder)))
    gone = rows.column(FILE_NAME)[0].as_py().partition("_")[0]
    replacing = ReplaceCommitMetadata(
        partition_to_replace_file_ids={rows.column(PARTITION_PATH)[0].as_py(): (gone,)}
    )
    instant = ".hoodie/timeline/20991231000000000_20991231000000001.replacecommit"
    storage.put(instant, replace.encode(replacing))
    selection = IndexChoice(IndexKind.GLOBAL_RECORD_INDEX)
    matches = locate(load_snapshot(storage), as_keyed(rows), selection, LocalExecutor(1))
    assert 0 < len(matches) < len(rows)
    assert 0 not in matches.rows


def test_the_partitioned_index_looks_into_the_partition_of_a_row(golden: GoldenTable) -> None:
    state = state_of(golden, "cow_record_index_partitioned")
    rows = Table(golden("cow_record_index_partitioned")).read_arrow()
    nowhere = keyed_rows([("nowhere", key) for key in rows.column(RECORD_KEY).to_pylist()])
    selection = IndexChoice(IndexKind.RECORD_INDEX)
    assert len(locate(state, nowhere, selection, LocalExecutor(1))) == 0
    assert len(locate(state, as_keyed(rows), selection, LocalExecutor(1))) == len(rows)
