"""The first hour, as its page tells it: run in a notebook's kernel and in a terminal."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "first-hour.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
ERASED = "\r\x1b[K"
TASKS = 20


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """The blocks of one language, each with the text that the page says comes of it."""
    found = [match.groups() for match in BLOCK.finditer(PAGE.read_text())]
    for (kind, code), (after, text) in zip(found, [*found[1:], ("", "")], strict=True):
        if kind == language:
            yield code, text if after == "text" else ""


def matches(expected: str, shown: str) -> bool:
    """Whether what is shown is what is expected, where `...` stands for anything."""
    parts = (re.escape(part).replace(r"\ ", " ") for part in expected.strip().split("..."))
    pattern = re.sub(r" +", r"\\s+", ".*".join(parts))
    return re.fullmatch(pattern, shown.strip(), re.DOTALL) is not None


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder in which the notebook has run, and what its cells have shown."""
    folder = tmp_path_factory.mktemp("first_hour")
    cells = [nbformat.v4.new_code_cell(code) for code, _ in blocks("python")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    # A kernel would look for settings, and write its history, in the home of whoever runs this.
    home = {"IPYTHONDIR": f"{folder}/home", "JUPYTER_PLATFORM_DIRS": "1"}
    client = NotebookClient(
        notebook, timeout=250, startup_timeout=250, allow_errors=True, kernel_name="python3"
    )
    client.execute(cwd=str(folder), env={**os.environ, **home})
    return folder, [shown_by(cell) for cell in notebook.cells]


def shown_by(cell: nbformat.NotebookNode) -> str:
    shown = []
    for output in cell.outputs:
        if output.output_type == "error":
            shown.append(f"{output.ename}: {output.evalue}")
        elif output.output_type == "execute_result":
            shown.append(output.data["text/plain"])
    return "\n".join(shown)


def test_the_page_has_twenty_tasks() -> None:
    numbers = re.findall(r"^(\d+)\\\.", PAGE.read_text(), re.MULTILINE)
    assert numbers == [str(number) for number in range(1, TASKS + 1)]


@pytest.mark.by_turns(0)
def test_each_cell_of_the_notebook_shows_what_the_page_says(lake: tuple[Path, list[str]]) -> None:
    for (code, expected), shown in zip(blocks("python"), lake[1], strict=True):
        assert matches(expected, shown), f"{code}\nshows\n{shown}"


@pytest.mark.by_turns(1)
def test_each_command_prints_in_a_terminal_what_the_page_says(
    lake: tuple[Path, list[str]],
) -> None:
    for block, _ in blocks("console"):
        command, expected = block.removeprefix("$ ").split("\n", 1)
        shown = printed_in_terminal(command, lake[0])
        assert matches(expected, shown), f"{command}\nprints\n{shown}"


def printed_in_terminal(command: str, folder: Path) -> str:
    """What a command prints where it finds a terminal."""
    ours, theirs = pty.openpty()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        found = b"".join(iter(lambda: read_terminal(ours), b""))
    os.close(ours)
    lines = found.decode().replace("\r\n", "\n").split("\n")
    # A line of progress is taken away before anything else is printed.
    return COLOURS.sub("", "\n".join(line.split(ERASED)[-1] for line in lines))


def read_terminal(descriptor: int) -> bytes:
    """Some of what was printed; nothing once all others have closed the terminal."""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
