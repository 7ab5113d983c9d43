"""Savepoints and restores by us and by Java: each goes back to what the other has kept."""

from pathlib import Path

import pytest

from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.restore.run import restore
from lakewarden.engine.services.savepoint.run import savepoint
from tests.interop.clean_cases import SHAPES, cleaning
from tests.interop.judges import JavaJudge
from tests.interop.stages import Stage
from tests.writing.model import ModelRow
from tests.writing.shapes import Shape


def remembered(stage: Stage) -> dict[tuple[str, str], ModelRow]:
    return dict(stage.story.model.rows)


def back_to(stage: Stage, rows: dict[tuple[str, str], ModelRow]) -> None:
    stage.story.model.rows = dict(rows)


def java_restores(stage: Stage, instant: str) -> None:
    stage.java.sql(f"CALL rollback_to_savepoint(table => 't', instant_time => '{instant}')")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("one", SHAPES, ids=str)
def test_java_goes_back_to_our_savepoint_and_we_after_it(
    one: Shape, java: JavaJudge, tmp_path: Path
) -> None:
    stage = Stage(one, java, tmp_path / "table")
    stage.write("upsert", "upsert")
    saved = savepoint(stage.context, comment="before")
    then = remembered(stage)
    stage.write("upsert", "delete", "upsert")
    clean(cleaning(stage.context))
    stage.java_writes()
    java_restores(stage, saved.instant)
    back_to(stage, then)
    stage.agreement.check_snapshot(stage.story.model.contents(), "Java's restore")
    stage.write("upsert")
    stage.java_writes()
    restore(stage.context, saved.instant)
    back_to(stage, then)
    stage.agree("our restore")
    stage.java_writes()
    stage.java.clean()
    stage.write("upsert")
    stage.agree("both went on")
    stage.agreement.check_truth()
