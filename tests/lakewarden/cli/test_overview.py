"""What a newcomer sees: one screen, near misses, a version, completion, and health's exit code."""

import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden import Table
from lakewarden.cli import main
from lakewarden.cli.call_arguments import known_names
from lakewarden.cli.console.loop import HELP, Console
from lakewarden.cli.overview import GROUPS, completion
from lakewarden.procedures.registry import PROCEDURES
from tests.engine.services.service_table import MOR, inserted, updated
from tests.writing.shapes import carry_out

COLUMNS, LINES = 80, 24
LAKEWARDEN = f"{shlex.quote(sys.executable)} -m lakewarden"


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], list[str]]:
    code = main(arguments)
    printed = capsys.readouterr()
    return code, printed.out.splitlines(), printed.err.splitlines()


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_the_overview_fits_a_screen(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines, _ = said(capsys, *arguments)
    assert code == 0
    assert len(lines) < LINES
    assert max(map(len, lines)) < COLUMNS


def test_each_command_of_the_overview_is_one() -> None:
    assert {name for names in GROUPS.values() for name in names} <= set(known_names())


def test_all_commands_are_listed_with_what_they_do(capsys: pytest.CaptureFixture[str]) -> None:
    _, lines, _ = said(capsys, "commands")
    told = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
    assert set(told) >= {name.replace("_", "-") for name in PROCEDURES} - {"help"}
    assert all(told.values())


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--version") == (0, [f"lakewarden {version('lakewarden')}"], [])


@pytest.mark.parametrize(
    ("typed", "meant"), [("timelin", "timeline"), ("compct", "compact"), ("table_helth", "health")]
)
def test_a_mistyped_command_has_a_short_answer(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, complaint = said(capsys, typed, "/lake")
    assert code == 1
    assert len(complaint) <= 5
    assert len(complaint[0]) < 200
    assert meant in complaint[0]
    assert "--help" in complaint[0]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["lakewarden", "timel"], "timeline"),
        (["lakewarden", "read", "--wh"], "--where"),
        (["lakewarden", "compact", "--canc"], "--cancellable"),
        (["lakewarden", "completion", "z"], "zsh"),
    ],
)
def test_bash_completes_commands_and_options(words: list[str], offered: str) -> None:
    script = "\n".join(completion(["bash"]))
    ask = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _lakewarden"
    answer = subprocess.run(
        ["bash", "-c", f'{script}\n{ask}\necho "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert offered in answer.stdout.split()


def test_zsh_is_given_every_command_and_its_options() -> None:
    script = "\n".join(completion(["zsh"]))
    assert script.startswith("#compdef lakewarden\n")
    assert "    read) compadd -- --as-of" in script
    assert all(f" {name}" in script for name in known_names())
    shell = shutil.which("zsh")
    if shell is not None:
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_completion_for_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, (complaint,) = said(capsys, "completion", "fish")
    assert code == 1
    assert "bash or zsh" in complaint


def test_health_tells_by_its_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "orders")
    table = MOR.create(path)
    carry_out(table, inserted())
    assert said(capsys, "health", path)[0] == 0
    for _ in range(6):
        carry_out(table, updated())
    assert any(row.verdict == "attention" for row in Table(path).health())
    assert said(capsys, "health", path)[0] == 1
    assert said(capsys, "health", str(tmp_path / "nothing"))[0] == 2


@pytest.mark.xdist_group("spark")
def test_the_console_helps_and_complains_in_few_lines(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []
    console = Console(spark, show=shown.append)
    assert console.run(["help;"], goes_on=True)
    assert tuple(shown) == HELP
    assert not console.run(["select * from ordres;"], goes_on=True)
    complaint = capsys.readouterr().err.splitlines()
    assert 0 < len(complaint) <= 4
    assert "ordres" in complaint[0]
