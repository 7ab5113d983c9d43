"""A table that Java divides into buckets, which no property says, is written in turns."""

from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.kernel.errors import InvalidRequest
from tests.canonical import canonical_rows, difference
from tests.interop.java_writes import COLUMNS, SMALL
from tests.interop.judges import JavaJudge
from tests.writing.model import SCHEMA

TURNS = 20
SIMPLE = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
CONSISTENT = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "4",
    "hoodie.bucket.index.min.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "8",
}

Row = dict[str, object]


def options_of(kind: str, partition: str, index: dict[str, str]) -> dict[str, str]:
    generator = "SimpleKeyGenerator" if partition else "NonpartitionedKeyGenerator"
    return {
        **SMALL,
        **index,
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": partition,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
        "hoodie.datasource.write.operation": "upsert",
    }


def rows(numbers: range, turn: int) -> list[Row]:
    return [
        {"id": f"k{number:03}", "p": "abc"[number % 3], "ts": turn, "v": float(turn), "name": "n"}
        for number in numbers
    ]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "partition"), [("COPY_ON_WRITE", ""), ("MERGE_ON_READ", "p")])
def test_each_key_stays_one_row(kind: str, partition: str, java: JavaJudge, tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = options_of(kind, partition, SIMPLE)
    java.write(path, rows(range(9), 0), columns=COLUMNS, options=options)
    present = {str(row["id"]): row for row in rows(range(9), 0)}
    for turn in range(1, TURNS + 1):
        some = rows(range(4 * turn, 4 * turn + 12), turn)
        present |= {str(row["id"]): row for row in some}
        if turn % 3 == 0:
            java.write(path, some, columns=COLUMNS, options=options)
        else:
            Table(str(path)).upsert(some)
        if kind == "MERGE_ON_READ" and turn % 5 == 0:
            Table(str(path)).compaction.schedule_and_run()
        found = Table(str(path)).read_arrow(SCHEMA.names).to_pylist()
        assert sorted(found, key=lambda row: str(row["id"])) == [
            {name: present[key][name] for name in SCHEMA.names} for key in sorted(present)
        ], turn
    assert not difference(java.read(path), canonical_rows(Table(str(path)).read_arrow()))
    assert java.validate(path) == {}


@pytest.mark.timeout(900)
def test_buckets_that_a_hash_ring_divides_are_refused(java: JavaJudge, tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = options_of("MERGE_ON_READ", "p", CONSISTENT)
    java.write(path, rows(range(9), 0), columns=COLUMNS, options=options)
    before = [instant.requested for instant in Table(str(path)).timeline().instants]
    table = Table(str(path))
    for write in (table.upsert, table.insert, table.bulk_insert, table.overwrite):
        with pytest.raises(InvalidRequest, match="CONSISTENT_HASHING"):
            write(rows(range(9), 1))
    assert [instant.requested for instant in table.timeline().instants] == before
    assert table.read_arrow().num_rows == 9
