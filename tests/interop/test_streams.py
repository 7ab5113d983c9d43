"""Java reads, upserts and compacts a table that a stream writes; the stream goes on after Java."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa

from lakewarden import Table
from lakewarden.engine.write.operations import apply_changes
from tests.all_kinds import BY_NAME, differences, give
from tests.interop.java_writes import CREATE_INDEX_LOCK, SMALL, JavaWriter
from tests.interop.judges import JavaJudge

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("n", pa.int32()),
        ("name", pa.string()),
    ]
)
COLUMNS = {"id": "string", "p": "string", "ts": "bigint", "n": "int", "name": "string"}
SETTINGS = {
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
BATCHES = 24
JAVA = (
    SMALL
    | CREATE_INDEX_LOCK
    | {
        "hoodie.record.index.update.partition.path": "true",
        "hoodie.index.type": "RECORD_INDEX",
        # Without it Java cannot read statistics of partitions in its tasks.
        "hoodie.embed.timeline.server": "true",
    }
)


def batches() -> Iterator[tuple[int, pa.Table, pa.ChunkedArray]]:
    """Batches with keys that are new, come late, move to other partitions, go and come back."""
    chance = Random(20)
    for number in range(BATCHES):
        keys = chance.sample(range(12 + number), 8)
        own = [
            {
                "id": f"k{key}",
                "p": chance.choice("abc"),
                "ts": number - 3 * (key % 4 == 0),
                "n": number,
                "name": f"n{key % 5}",
            }
            for key in keys
        ]
        is_delete = [key % 3 == number % 3 for key in keys]
        yield number, pa.Table.from_pylist(own, SCHEMA), pa.chunked_array([is_delete])


def stream(table: Table, folder: Path, chosen: range) -> None:
    said = SETTINGS | {"lakewarden.stream.key_cache_folder": str(folder)}
    for number, given, is_delete in batches():
        if number in chosen:
            table.write(apply_changes(given, is_delete), said, stream=("s", number))


def agree(java: JavaJudge, path: Path) -> None:
    """Java reads the rows that we read, and each index says what the files say."""
    found = Table(str(path)).read_arrow(["id", "p", "ts", "n", "name"]).to_pylist()
    by_java = [{name: row[name] for name in COLUMNS} for row in java.read(path)]
    assert sorted(by_java, key=str) == sorted(found, key=str)
    assert differences(Table(str(path))) == []
    assert java.validate(path) == {}


def test_java_goes_on_after_batches_of_a_stream_and_the_stream_after_java(
    java: JavaJudge, tmp_path: Path
) -> None:
    path, folder = tmp_path / "streamed", tmp_path / "keys"
    table = Table.create(
        str(path),
        SCHEMA,
        key=["id"],
        partition=["p"],
        ordering=["ts"],
        type="mor",
        index="RECORD_INDEX",
        properties={"hoodie.metadata.global.record.level.index.min.filegroup.count": "2"},
    )
    stream(table, folder, range(2))
    give(table, (BY_NAME,))
    stream(table, folder, range(2, 12))
    agree(java, path)
    writer = JavaWriter(java, path, JAVA)
    newer = [{"id": f"k{key}", "p": "a", "ts": 99, "n": 1, "name": "by Java"} for key in (1, 90)]
    writer.write(newer, "upsert", COLUMNS)
    writer.compact()
    stream(table, folder, range(12, 18))
    agree(java, path)
    # A process that starts finds what the other has saved, and what Java has compacted since.
    stream(Table(str(path)), folder, range(18, BATCHES))
    agree(java, path)
    assert {"k1", "k90"} <= {row["id"] for row in java.read(path) if row["name"] == "by Java"}
