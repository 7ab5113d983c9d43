"""Where benchmarks keep what they build, so that a second run finds it."""

import shutil
from collections.abc import Callable
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
WORK = CHECKOUT / "bench" / ".work"


def built_once(name: str, build: Callable[[Path], None]) -> Path:
    """A folder that `build` has filled; one that it left half done is made anew."""
    done = WORK / name
    if not done.is_dir():
        unfinished = WORK / f"{name}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        build(unfinished)
        unfinished.rename(done)
    return done
