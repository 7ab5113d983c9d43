"""Tables whose files name places elsewhere: nothing there is touched, and the file is told."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import LakewardenError, Table
from tests.hostile.hostile_tables import CANARY, LINK, OPERATIONS, Hostile, Scene, hostile_tables
from tests.hostile.watched_folder import Watched

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64()), ("p", pa.string())])
TABLES_MIN = 100
_QUICKLY: Mapping[str, object] = {"durable": False}


@dataclass(frozen=True, slots=True)
class HostileTable:
    """A sound table, a folder beside it that is watched, and places for copies of the table."""

    folder: Path
    sound: Path
    outside: Path
    watched: Watched
    scene: Scene


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileTable]:
    folder = tmp_path_factory.mktemp("hostile")
    outside = folder / "outside"
    outside.mkdir()
    for name in (CANARY, "hoodie.properties"):
        (outside / name).write_bytes(b"precious")
    sound = folder / "sound"
    table = Table.create(
        str(sound), SCHEMA, key=["id"], partition=["p"], type="mor", storage_options=_QUICKLY
    )
    table.upsert([{"id": "a", "v": 1, "p": "p"}])
    completed = table.upsert([{"id": "a", "v": 2, "p": "p"}]).instant
    (path,) = (sound / ".hoodie/timeline").glob(f"{completed}_*.deltacommit")
    (sound / LINK).symlink_to(outside)
    scene = Scene(
        outside=str(outside),
        partition="p",
        completed=completed,
        completed_path=str(path.relative_to(sound)),
        properties=(sound / ".hoodie/hoodie.properties").read_text(),
    )
    watched = Watched(outside)
    yield HostileTable(folder, sound, outside, watched, scene)
    watched.close()


def _reported(hostile: Hostile, table: Path) -> list[str]:
    """What the operations on a hostile table answer."""
    reported = []
    for name in hostile.operations:
        try:
            answer = OPERATIONS[name](Table(str(table), storage_options=_QUICKLY))
        except LakewardenError as error:
            reported.append(f"{name}: {error}")
        else:
            whole = tuple(answer) if isinstance(answer, tuple) else answer
            reported.append(f"{name} gives {whole}")
    return reported


def test_nothing_outside_is_touched_and_the_file_that_names_it_is_told(world: HostileTable) -> None:
    wrong: list[object] = []
    tables = list(hostile_tables(world.scene))
    assert len(tables) >= TABLES_MIN
    for hostile in tables:
        table = world.folder / "sound_copy"
        shutil.rmtree(table, ignore_errors=True)
        shutil.copytree(world.sound, table, symlinks=True)
        for path, content in hostile.files.items():
            (table / path).parent.mkdir(parents=True, exist_ok=True)
            (table / path).write_bytes(content)
        world.watched.seen()
        reported = _reported(hostile, table)
        if touched := world.watched.seen():
            wrong.append((hostile.name, "touched", touched, reported))
        is_reported = any(hostile.said_by in one or f"/{LINK} is a link" in one for one in reported)
        # By its name a link is as good as a folder; it is told by whatever would follow it.
        if not is_reported and not hostile.name.endswith(": link"):
            wrong.append((hostile.name, "not told", hostile.said_by, reported))
        if not (table / ".hoodie/hoodie.properties").exists():
            wrong.append((hostile.name, "properties are gone", [], reported))
        assert sorted(one.name for one in world.outside.iterdir()) == [CANARY, "hoodie.properties"]
        world.watched.seen()
    assert not wrong, "\n".join(map(str, wrong))


def test_the_watch_notices_who_opens_lists_makes_and_deletes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    watched = Watched(tmp_path)
    assert not watched.seen()
    for act in (
        lambda: list(tmp_path.iterdir()),
        lambda: pa.OSFile(str(tmp_path / "file")).read(),
        lambda: (tmp_path / "new").touch(),
        lambda: (tmp_path / "new").unlink(),
    ):
        act()
        assert watched.seen()
    watched.close()
