"""A racer: a process with two threads that write to one table as fast as they can.

Every attempt is reported as one line of JSON: a commit, or whom it lost to.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict
from tests.writing.model import ModelRow

CHECKOUT = Path(__file__).parents[2]
THREADS = 2
SHARED_KEY = "shared"
ATTEMPTS_MAX = 400

Options = Mapping[str, str]
Report = dict[str, Any]


def own_row(writer: str, number: int) -> ModelRow:
    return {"id": f"{writer}-{number:03d}", "p": writer[0], "ts": number, "v": 1.0, "name": writer}


def shared_row() -> ModelRow:
    return {"id": SHARED_KEY, "p": "a", "ts": 0, "v": 0.0, "name": "counter"}


def disjoint(table: Table, writer: str, number: int, options: Options) -> str:
    """Add a row that nobody else touches."""
    return table.insert([own_row(writer, number)], options, small_file_limit=0).instant


def overlapping(table: Table, writer: str, number: int, options: Options) -> str:
    """Count one up in a row that everybody wants."""
    added = {"v": pc.add(pc.field("v"), 1.0)}
    return table.update_where([("id", "=", SHARED_KEY)], added, options).instant


MODES = {"disjoint": disjoint, "overlapping": overlapping}


def start_racer(
    path: Path, mode: str, process: str, count: int, options: Options | None = None
) -> "subprocess.Popen[str]":
    """The process, whose name is one letter; each of its threads makes so many commits."""
    command = [sys.executable, "-m", "tests.races.racer"]
    return subprocess.Popen(
        [*command, str(path), mode, process, str(count), json.dumps(options or {})],
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
    )


def reports_of(racer: "subprocess.Popen[str]") -> list[Report]:
    """Everything it has to tell; waits for its end."""
    output, _ = racer.communicate()
    assert racer.returncode == 0
    return [json.loads(line) for line in output.splitlines() if line]


def race(path: str, mode: str, writer: str, count: int, options: Options) -> Iterator[Report]:
    """Commit so many times; attempts that lose are told and made again."""
    committed = 0
    for _ in range(ATTEMPTS_MAX):
        if committed == count:
            return
        try:
            instant = MODES[mode](Table(path), writer, committed, options)
        except Conflict as error:
            yield {"writer": writer, "lost": error.code, "to": error.parameters.get("instant")}
            continue
        yield {"writer": writer, "instant": instant, "number": committed}
        committed += 1


def main(path: str, mode: str, process: str, count: str, options: str) -> None:
    def run(thread: int) -> None:
        for report in race(path, mode, f"{process}{thread}", int(count), json.loads(options)):
            print(json.dumps(report) + "\n", end="", flush=True)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(run, range(THREADS)))


if __name__ == "__main__":
    main(*sys.argv[1:])
