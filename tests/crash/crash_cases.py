"""The table and rows that tests of crashes share."""

from tests.writing.model import Model, ModelRow, Write
from tests.writing.shapes import Shape


def row(key: str, partition: str, ts: int) -> ModelRow:
    return {"id": key, "p": partition, "ts": ts, "v": ts / 2, "name": f"{key} at {ts}"}


HISTORY = (
    Write("upsert", tuple(row(f"k{n}", "ab"[n % 2], 1) for n in range(6))),
    Write("upsert", (row("k1", "b", 2), row("k6", "a", 2))),
)
NEXT = Write("upsert", (row("k2", "a", 9), row("z", "c", 9)))


def contents(shape: Shape, *writes: Write) -> list[ModelRow]:
    model: Model = shape.model()
    for write in writes:
        model.apply(write)
    return model.contents()
