"""Every procedure is a command with an option for each of its arguments."""

import csv
import json
from pathlib import Path

import pytest

from lakewarden.cli import main
from lakewarden.cli.arguments import parse
from lakewarden.cli.call_arguments import COMMANDS, SHORT_NAMES, CallCommand, option_names
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.declaration import SqlType
from lakewarden.procedures.registry import PROCEDURES
from lakewarden.table import Table
from tests.engine.services.service_table import MOR, inserted, updated
from tests.golden_tables import GoldenTable
from tests.writing.shapes import carry_out

HELD = "mor_compaction_requested"


def wished(*arguments: str) -> CallCommand:
    command = parse(arguments)
    assert isinstance(command, CallCommand)
    return command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A merge-on-read table with logs in two partitions."""
    path = str(tmp_path / "orders")
    table = MOR.create(path)
    for write in (inserted(), updated()):
        carry_out(table, write)
    return path


@pytest.mark.parametrize("name", PROCEDURES)
def test_every_argument_is_an_option_in_every_spelling(name: str) -> None:
    procedure = PROCEDURES[name]
    parameters = procedure.parameters
    spellings = [option_names(parameter) for parameter in parameters]
    for number in range(max(map(len, spellings))):
        line: list[str] = []
        for parameter, names in zip(parameters, spellings, strict=True):
            is_flag = parameter.type is SqlType.BOOLEAN
            line += [names[number % len(names)], *([] if is_flag else ["7"])]
        command = wished(name, *line)
        assert command.procedure is procedure
        assert command.named == {
            one.name: "true" if one.type is SqlType.BOOLEAN else "7" for one in parameters
        }


@pytest.mark.parametrize("name", PROCEDURES)
def test_options_are_spelled_as_arguments_are(name: str) -> None:
    for parameter in PROCEDURES[name].parameters:
        for spelling in parameter.spellings:
            dashed = spelling.replace("_", "-")
            assert {f"--{spelling}", f"--{dashed}"} <= set(option_names(parameter))


@pytest.mark.parametrize("name", PROCEDURES)
def test_a_command_is_spelled_with_dashes_or_underscores(name: str) -> None:
    assert COMMANDS[name] is COMMANDS[name.replace("_", "-")] is PROCEDURES[name]


def test_short_names_lead_to_procedures() -> None:
    assert set(SHORT_NAMES.values()) <= set(PROCEDURES)
    assert all(COMMANDS[short] is PROCEDURES[long] for short, long in SHORT_NAMES.items())


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("compact /t --schedule --dry-run", {"path": "/t", "op": "schedule", "dry_run": "true"}),
        ("compact --dry-run /t --execute", {"path": "/t", "op": "execute", "dry_run": "true"}),
        ("compact /t --op execute", {"path": "/t", "op": "execute"}),
        ("cancel /t 123 --reason why", {"path": "/t", "instant": "123", "reason": "why"}),
        ("cancel /t --instant 123", {"path": "/t", "instant": "123"}),
        ("cancel --path /t 123", {"path": "/t", "instant": "123"}),
        ("show-timeline /t --showArchived", {"path": "/t", "show_archived": "true"}),
        ("show_timeline /t --show-archived false", {"path": "/t", "show_archived": "false"}),
        ("show_timeline /t --show_archived=TRUE", {"path": "/t", "show_archived": "true"}),
        ("show-fsview-latest /t --no-merge", {"path": "/t", "merge": "false"}),
        ("commits-compare /a /b", {"table": "/a", "path": "/b"}),
        ("show_plans --table /t", {"table": "/t"}),
        ("help show_commits", {"cmd": "show_commits"}),
    ],
)
def test_a_line_means_a_call(line: str, named: dict[str, str]) -> None:
    assert wished(*line.split()).named == named


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("show-commits /t --limt 3", "--limt"),
        ("show-commits /t more", "'more' is not understood"),
        ("cancel /t 1 2", "'2' is not understood"),
        ("show-timeline /t --show-archived=perhaps", "neither true nor false"),
        ("show-commits /t --output xml", "'xml'"),
        ("show-comits /t", "'show-comits'"),
    ],
)
def test_a_bad_line_is_refused(line: str, part: str) -> None:
    with pytest.raises(InvalidRequest, match=part) as refused:
        parse(line.split())
    assert refused.value.code == "bad_arguments"


def test_rows_are_printed_in_every_form(capsys: pytest.CaptureFixture[str], path: str) -> None:
    code, as_json, _ = run(capsys, "show-commits", path, "--output", "json")
    found = [json.loads(line) for line in as_json.splitlines()]
    assert (code, len(found)) == (0, 2)
    _, as_csv, _ = run(capsys, "show_commits", path, "--output", "csv")
    assert [row["commit_time"] for row in csv.DictReader(as_csv.splitlines())] == [
        row["commit_time"] for row in found
    ]
    _, as_table, _ = run(capsys, "commits", path, "--limit", "1")
    assert as_table.splitlines()[0].startswith("commit_time")


def test_a_plan_is_made_shown_and_carried_out(
    capsys: pytest.CaptureFixture[str], path: str
) -> None:
    code, _, _ = run(capsys, "compact", path, "--schedule", "--dry-run")
    _, plans, _ = run(capsys, "plans", path, "--output", "json")
    assert (code, plans) == (0, "")
    assert run(capsys, "compact", path, "--schedule")[0] == 0
    _, plans, _ = run(capsys, "plans", path, "--output", "json")
    (plan,) = map(json.loads, plans.splitlines())
    assert plan["service"] == "compaction"
    assert run(capsys, "run-compaction", path, "--execute")[0] == 0
    code, rows, _ = run(capsys, "show_compaction", path, "--filter", "state = 'COMPLETED'")
    assert (code, plan["instant"] in rows) == (0, True)
    # Nothing is left to do, which is no error.
    assert run(capsys, "compact", path, "--execute")[0] == 0


def test_exit_codes_tell_what_went_wrong(
    capsys: pytest.CaptureFixture[str], golden_copy: GoldenTable, path: str
) -> None:
    code, _, said = run(capsys, "show-commit-files", path, "20200101000000000")
    assert (code, said.partition(":")[0]) == (1, "unknown_instant")
    code, _, said = run(capsys, "show-commits")
    assert (code, said.partition(":")[0]) == (1, "no_table")
    (done,) = Table(path).timeline().completed()[-1:]
    code, out, _ = run(capsys, "cancel", path, done.requested, "--output", "json")
    assert (code, json.loads(out)["outcome"]) == (3, "already_committed")
    held = str(golden_copy(HELD))
    _, plans, _ = run(capsys, "plans", held, "--output", "json")
    instant = json.loads(plans)["instant"]
    code, out, _ = run(capsys, "cancel", held, instant, "--dry-run", "--output", "json")
    assert (code, json.loads(out)["outcome"]) == (1, "refused")
    code, _, said = run(capsys, "cancel", held, instant)
    assert (code, "cancel it with force" in said) == (1, True)


def test_help_of_a_command_names_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["cancel", "--help"])
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert "lakewarden cancel-plan [PATH] [INSTANT]" in said
    assert "--wait-seconds" in said
