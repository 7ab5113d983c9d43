"""A filter of an expression has all values, and memory does not grow with them."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.formats.bloom import BloomFilter, BloomOptions, build_bloom, parse_bloom
from lakewarden.engine.metadata.entries.expressions import IndexExpression
from lakewarden.engine.metadata.entries.row_indexes import ExpressionIndex, RowGatherer

INDEX = ExpressionIndex("expr_index_by_low", "name", IndexExpression("lower", {}), is_filter=True)
SIZE = BloomOptions(entries=1000, entries_max=3000)
EACH = 50_000


def names(part: int) -> list[str]:
    return [f"Name {number}" for number in range(part * EACH, (part + 1) * EACH)]


def filter_of(gathered: RowGatherer) -> BloomFilter:
    stored = gathered.filters()[INDEX.partition]
    return parse_bloom(stored.text, stored.type_code, "a filter")


def test_a_filter_of_more_values_than_are_held_has_them_all() -> None:
    gathered = RowGatherer([INDEX], SIZE)
    before, held = pa.total_allocated_bytes(), []
    for part in range(8):
        gathered.add(pa.table({"name": names(part)}))
        held.append(pa.total_allocated_bytes() - before)
    # Three parts are more than are held.
    assert max(held) < 3 * held[0]
    asked = [name.lower() for part in range(8) for name in names(part)[::100]]
    assert filter_of(gathered).might_contain(pa.array(asked)).all()


def test_a_filter_of_values_that_repeat_is_that_of_each_once() -> None:
    gathered = RowGatherer([INDEX], SIZE)
    for _ in range(8):
        gathered.add(pa.table({"name": names(0)[:2500]}))
    once = build_bloom(
        pa.array([name.lower() for name in names(0)[:2500]]), entries=1000, entries_max=3000
    )
    assert filter_of(gathered).text() == once.text()


def test_a_filter_of_few_values_is_small_unless_its_size_is_set() -> None:
    rows = pa.table({"name": names(0)[:20]})
    usual = BloomOptions(is_fitted=True)
    set_by_index = replace(INDEX, filter_options={"numentries": str(usual.entries)})
    sizes = []
    for index, size in ((INDEX, usual), (INDEX, BloomOptions()), (set_by_index, usual)):
        gathered = RowGatherer([index], size)
        gathered.add(rows)
        assert filter_of(gathered).might_contain(pc.utf8_lower(rows["name"])).all()
        sizes.append(len(gathered.filters()[INDEX.partition].text))
    fitted, whole, by_index = sizes
    assert fitted < 1000 < 400_000 < whole == by_index
