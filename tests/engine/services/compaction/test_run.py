"""New base files: what they take over from the old one, and what they say of their keys."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden import Table
from lakewarden.engine.formats.bloom import BloomFilter
from lakewarden.engine.formats.parquet_footer import KeyFooter, key_footer
from lakewarden.engine.services.compaction.run import HASHED_ANEW_MAX
from lakewarden.engine.services.compaction.service import COMPACTION
from lakewarden.engine.services.execution.execute import execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import schedule
from tests.engine.services.service_table import ServiceWorld, new_service_world
from tests.writing.shapes import Shape

FLAT = Shape("mor", is_partitioned=False, has_metadata=False)
# New keys go to logs.
BUCKETS = Shape("mor", is_partitioned=False, has_metadata=False, index="BUCKET")


def rows(keys: range, ts: int, names: list[str | None]) -> pa.Table:
    count = len(keys)
    return pa.table(
        {
            "id": pa.array([f"k{number:06d}" for number in keys]),
            "p": pa.repeat("a", count),
            "ts": pa.repeat(ts, count),
            "v": pa.repeat(0.5, count),
            "name": pa.array([names[number % len(names)] for number in keys], pa.string()),
        }
    )


def compacted(world: ServiceWorld) -> list[pq.ParquetFile]:
    """The new base files."""
    plan = schedule(world.context(), COMPACTION, PlanRequest())
    assert plan
    execute(world.context(), COMPACTION, plan.instant)
    slices = world.slices()
    assert not any(slice_.log_files for slice_ in slices)
    files = [(one, one.base_file) for one in slices if one.base_file is not None]
    return [pq.ParquetFile(world.storage.open(one.path(base))) for one, base in files]


def sorted_rows(table: Table) -> pa.Table:
    return table.read_arrow(columns=["id", "ts", "name"]).sort_by("id").combine_chunks()


def footer_of(file: pq.ParquetFile) -> KeyFooter:
    return key_footer(file.metadata)


def may_have(bloom: BloomFilter, keys: pa.Array) -> bool:
    return bool(bloom.might_contain(keys).all())


@pytest.mark.parametrize("fresh", ["a value of its own", "red", None])
def test_texts_kept_as_dictionaries_mix_with_those_of_logs(fresh: str | None) -> None:
    world = new_service_world(FLAT)
    names = ["red", "green", None, "blue and longer than the others"]
    world.table(2).upsert(rows(range(3000), 1, names))
    world.clock.advance(1000)
    world.table(3).upsert(rows(range(100, 900), 2, [fresh, "green"]))
    before = sorted_rows(world.table(4))
    (file,) = compacted(world)
    assert sorted_rows(world.table(5)) == before
    assert file.read(["name"]).num_rows == 3000
    encodings = {
        file.metadata.row_group(0).column(place).path_in_schema: file.metadata.row_group(0)
        .column(place)
        .encodings
        for place in range(file.metadata.num_columns)
    }
    assert any("DICTIONARY" in encoding for encoding in encodings["name"])
    assert file.schema_arrow.field("name").type == pa.string()


@pytest.mark.parametrize("count", [200, 2 * HASHED_ANEW_MAX + 9000])
def test_the_filter_knows_all_keys_of_large_files_and_of_small_ones(count: int) -> None:
    world = new_service_world(BUCKETS)
    world.table(2).upsert(rows(range(count), 1, ["n"]))
    compacted(world)
    world.clock.advance(1000)
    world.table(3).upsert(rows(range(count - 50, count + 150), 2, ["m"]))
    files = compacted(world)
    assert len(files) == 2
    for file in files:
        footer, keys = footer_of(file), file.read(["_hoodie_record_key"]).column(0)
        bloom = footer.bloom_filter("")
        assert bloom is not None
        assert may_have(bloom, keys.combine_chunks())
        assert footer.min_key == min(keys.to_pylist())
        assert footer.max_key == max(keys.to_pylist())
