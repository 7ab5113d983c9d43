"""Print the way of a call through our code:  walk.py read|upsert|compaction|call [--counts]

The call is made on a small table in a folder that is gone afterwards. What is printed is a tree: a
file where it is entered for the first time, below the file that called it, with its functions in
the order of their first calls. The last line counts files and functions, also those of other
threads. Imports do not count.
"""

import argparse
import contextlib
import io
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pyarrow as pa

import lakewarden
from lakewarden.cli import main as command_line

PACKAGE = Path(lakewarden.__file__).parent
CHECKOUT = PACKAGE.resolve().parent
SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("qty", pa.int32())]
)
CITIES = ("Oslo", "Lima", "Pune")

# What Python makes around a body: no function of the source.
_NOT_WRITTEN = ("<module>", "<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


@dataclass
class Walk:
    """The files and functions that calls have entered, each once, in order."""

    root: "Room" = field(default_factory=lambda: Room("", []))
    rooms: dict[str, "Room"] = field(default_factory=dict)
    functions: set[tuple[str, str]] = field(default_factory=set)

    def enter(self, frame: FrameType, event: str, _: object) -> None:
        """As `sys.setprofile` calls it."""
        path = _own_path(frame) if event == "call" else None
        if path is None or frame.f_code.co_qualname.endswith(_NOT_WRITTEN):
            return
        name = frame.f_code.co_qualname.replace("<locals>.", "")
        if (path, name) in self.functions:
            return
        self.functions.add((path, name))
        if path not in self.rooms:
            room = self.rooms[path] = Room(path, [])
            self._caller(frame).entries.append(room)
        self.rooms[path].entries.append(name)

    def _caller(self, frame: FrameType) -> "Room":
        caller = frame.f_back
        while caller is not None:
            path = _own_path(caller)
            if path in self.rooms:
                return self.rooms[path]
            caller = caller.f_back
        return self.root

    def lines(self) -> Iterator[str]:
        yield from self.root.lines("")
        yield f"{len(self.rooms)} files, {len(self.functions)} functions"


@dataclass
class Room:
    """A file: the functions that were entered there, and the files that it was first to call."""

    path: str
    entries: "list[str | Room]"

    def lines(self, indent: str) -> Iterator[str]:
        functions = [one for one in self.entries if isinstance(one, str)]
        if self.path:
            yield f"{indent}{self.path}: {', '.join(functions)}"
        for one in self.entries:
            if isinstance(one, Room):
                yield from one.lines(indent + "  " if self.path else indent)


def walk(name: str, folder: Path) -> Walk:
    """The way of one of the calls, made once before, so that nothing is imported on it."""
    found = Walk()
    with contextlib.redirect_stdout(io.StringIO()):
        WALKS[name](folder / "before")()
        call = WALKS[name](folder / "walked")
        threading.setprofile(found.enter)
        sys.setprofile(found.enter)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return found


def read(folder: Path) -> Callable[[], object]:
    """A read of two columns with a filter, on base files and logs, through the metadata table."""
    path = str(_orders(folder))
    return lambda: lakewarden.Table(path).read_arrow(
        columns=["id", "qty"], filter=[("city", "=", "Oslo"), ("qty", ">", 1)]
    )


def upsert(folder: Path) -> Callable[[], object]:
    """An upsert of known and new keys, with the record index."""
    path = str(_orders(folder))
    return lambda: lakewarden.Table(path).upsert(_rows(2, range(6, 18)))


def compaction(folder: Path) -> Callable[[], object]:
    """A compaction, scheduled and run."""
    path = str(_orders(folder))
    return lambda: lakewarden.Table(path).compaction.schedule_and_run()


def call(folder: Path) -> Callable[[], object]:
    """`CALL show_plans` from a shell, which goes where SQL's goes, but for Spark's classes."""
    path = str(_orders(folder))
    lakewarden.Table(path).compaction.schedule(cancellable=True)
    return lambda: command_line(["show-plans", path, "--output", "csv"])


WALKS: dict[str, Callable[[Path], Callable[[], object]]] = {
    "read": read,
    "upsert": upsert,
    "compaction": compaction,
    "call": call,
}


def _orders(folder: Path) -> Path:
    table = lakewarden.Table.create(
        str(folder),
        SCHEMA,
        key=["id"],
        partition=["city"],
        ordering=["ts"],
        type="mor",
        properties={"hoodie.metadata.global.record.level.index.enable": "true"},
    )
    table.upsert(_rows(0, range(12)))
    table.upsert(_rows(1, range(6)))
    return folder


def _rows(version: int, numbers: range) -> pa.Table:
    rows = [
        {"id": f"order-{n}", "city": CITIES[n % len(CITIES)], "ts": version, "qty": n}
        for n in numbers
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _own_path(frame: FrameType) -> str | None:
    name = frame.f_code.co_filename
    if name.startswith(str(PACKAGE)):
        return name.removeprefix(str(PACKAGE))[1:]
    return name.removeprefix(str(CHECKOUT))[1:] if _is_linked(name) else None


def _is_linked(name: str) -> bool:
    folders = ("engine", "procedures", "sql_ext")
    return any(name.startswith(f"{CHECKOUT / folder}/") for folder in folders)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("call", choices=WALKS)
    parser.add_argument("--counts", action="store_true", help="only the last line")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        lines = list(walk(asked.call, Path(folder)).lines())
    print("\n".join(lines[-1:] if asked.counts else lines))


if __name__ == "__main__":
    main(sys.argv[1:])
