"""Files that are damaged or made to unfold: an error, soon, and in little memory."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hostile.damaged_files import damaged_files, whole_files
from tests.hostile.measure import A_VALUE, REFUSED
from tests.hostile.reading import READERS

ROOT = Path(__file__).parents[2]
FILES_MIN = 200
SECONDS_MAX = 2
PEAK_MB_MAX = 300
# So that a bomb that goes off harms nobody else.
ADDRESSES_KB_MAX = 8 << 20
BOMB = "bomb"


@dataclass(frozen=True, slots=True)
class Reading:
    name: str
    end: str
    seconds: float
    peak_mb: int


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Reading]:
    folder = tmp_path_factory.mktemp("damaged")
    for file in damaged_files():
        mark = BOMB if file.is_bomb else "damaged"
        name = f"{file.kind} {mark} {file.name}".replace("/", "-")
        (folder / name).write_bytes(file.content)
    return tuple(_measured(folder))


def _measured(folder: Path) -> Iterator[Reading]:
    command = (
        f"ulimit -v {ADDRESSES_KB_MAX}; exec {sys.executable} -m tests.hostile.measure {folder}"
    )
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    for line in done.stdout.splitlines():
        found: Mapping[str, object] = json.loads(line)
        yield Reading(
            str(found["name"]),
            str(found["end"]),
            float(str(found["seconds"])),
            int(str(found["peak_mb"])),
        )


@pytest.mark.parametrize("kind", whole_files())
def test_the_files_that_are_damaged_can_be_read_when_they_are_not(kind: str) -> None:
    if kind != "ledger":
        READERS[kind](whole_files()[kind])


def test_each_ends_with_an_error_or_a_value_soon_and_in_little_memory(
    readings: Sequence[Reading],
) -> None:
    assert len(readings) >= FILES_MIN
    for one in readings:
        assert one.end == A_VALUE or one.end.startswith(REFUSED), one
        assert one.seconds < SECONDS_MAX, one
        assert one.peak_mb < PEAK_MB_MAX, one


def test_whatever_is_made_to_unfold_is_refused(readings: Sequence[Reading]) -> None:
    for one in readings:
        if f" {BOMB} " in one.name:
            assert one.end.startswith(REFUSED), one


def test_a_file_that_is_cut_short_is_refused(readings: Sequence[Reading]) -> None:
    cut = [one for one in readings if " cut at " in one.name]
    # Properties are lines, of which any number may be, and a log may end behind any of its blocks.
    for one in cut:
        if not one.name.startswith("properties"):
            assert one.end.startswith(REFUSED), one
