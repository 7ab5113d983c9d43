"""Change data: we and Java write one table in turns, and both tell the same of each commit."""

from pathlib import Path
from random import Random

import pytest

from lakewarden import Table
from tests.canonical import difference
from tests.captured_rows import images_of
from tests.interop.agreement import BEFORE_EVERYTHING
from tests.interop.java_writes import COLUMNS, JavaWriter
from tests.interop.judges import JavaJudge
from tests.interop.lines import Refused
from tests.writing.model import Kind, Story
from tests.writing.shapes import Shape, carry_out

KINDS: tuple[Kind, ...] = ("upsert", "upsert", "upsert", "delete", "overwrite_partitions")
MODE = "hoodie.table.cdc.supplemental.logging.mode"
CDC = {"hoodie.datasource.query.incremental.format": "cdc"}
TURNS, DRAWN = 10, 4


def check_windows(java: JavaJudge, path: Path, chance: Random, drawn: int) -> int:
    """The changes of some windows are the same to Java and to us; how many there were."""
    table = Table(str(path))
    moments = [BEFORE_EVERYTHING, *(str(one.completed) for one in table.timeline().completed())]
    windows = [(moments[0], moments[-1])]
    windows += [tuple(sorted(chance.sample(moments, 2))) for _ in range(drawn)]
    changes = 0
    for window in windows:
        ours = table.changes_arrow(*window, mode="cdc").to_pylist()
        javas = java.read(path, window=window, options=CDC)
        assert not difference(images_of(javas), images_of(ours)), window
        changes += len(ours)
    return changes


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("type_", "mode"),
    [("cow", "OP_KEY_ONLY"), ("cow", "DATA_BEFORE"), ("mor", "DATA_BEFORE_AFTER")],
)
def test_both_tell_the_same_changes(type_: str, mode: str, java: JavaJudge, tmp_path: Path) -> None:
    path = tmp_path / "table"
    shape, chance = Shape(type_), Random(7)
    table = shape.create(str(path), {"hoodie.table.cdc.enabled": "true", MODE: mode})
    writer = JavaWriter(java, path)
    for write in Story(7, shape.model(), kinds=KINDS).writes(TURNS):
        if chance.random() < 0.5:
            carry_out(table, write)
        else:
            writer.carry_out(write)
    assert check_windows(java, path, chance, DRAWN) > TURNS


def captured(java: JavaJudge, path: Path, ours: int) -> str:
    """What Java says where it fails to tell changes; we tell so many."""
    table = Table(str(path))
    window = (BEFORE_EVERYTHING, str(table.timeline().completed()[-1].completed))
    assert len(table.changes_arrow(*window, mode="cdc")) == ours
    with pytest.raises(Refused) as failed:
        java.read(path, window=window, options=CDC)
    return str(failed.value)


def test_java_fails_without_a_log_of_changes_or_a_base_file(
    java: JavaJudge, tmp_path: Path
) -> None:
    captures = {"hoodie.table.cdc.enabled": "true"}
    inserted, bucket = tmp_path / "inserted", tmp_path / "bucket"
    Shape("cow").create(str(inserted), captures)
    table = Shape("mor", index="BUCKET").create(str(bucket), captures)
    for number, key in enumerate("ab", start=1):
        row = {"id": key, "p": "a", "ts": number, "v": 0.5, "name": key}
        JavaWriter(java, inserted).write([row], "insert", COLUMNS)
        table.upsert([{**row, "id": "a"}])
    assert "There should be a cdc log file" in captured(java, inserted, 2)
    assert "No value present" in captured(java, bucket, 2)
