"""Stories: after any sequence of writes a table has the rows that the model has."""

import os

import pytest

from tests.writing.model import Kind, Story, contents_of
from tests.writing.shapes import Shape, all_shapes, carry_out, pairwise_shapes

KINDS: tuple[Kind, ...] = ("upsert", "upsert", "upsert", "insert", "bulk_insert", "delete")
PARTITION_KINDS: tuple[Kind, ...] = (*KINDS, "overwrite_partitions", "delete_partitions")


# `make simulate` tells a story of every shape.
SHAPES = all_shapes() if "LAKEWARDEN_KILLS" in os.environ else pairwise_shapes()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_table_has_the_rows_of_the_model(shape: Shape, memory_path: str) -> None:
    table = shape.create(memory_path)
    kinds = PARTITION_KINDS if shape.is_partitioned else KINDS
    story = Story(7, shape.model(), kinds=kinds)
    for write in story.writes(12):
        carry_out(table, write)
        expected = story.model.contents()
        assert contents_of(table.read_arrow()) == expected, write.kind
        assert contents_of(table.read_arrow(use_metadata=False)) == expected, write.kind
