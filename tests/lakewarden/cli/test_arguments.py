"""Command lines and the requests they stand for."""

import pytest

from lakewarden import InvalidRequest
from lakewarden.cli.arguments import parse
from lakewarden.cli.command_line import CommandLine


def test_a_plain_command() -> None:
    assert parse(["timeline", "/lake"]) == CommandLine(
        command="timeline", path="/lake", output="table", options={}, limit=None
    )


def test_all_that_a_read_can_be_told() -> None:
    line = (
        "read /lake --columns id,qty --where qty>3 --where city=Oslo --as-of 20261118101500123 "
        "--mode read_optimized --no-metadata --limit 5 --output json"
    )
    assert parse(line.split()) == CommandLine(
        command="read",
        path="/lake",
        output="json",
        options={},
        limit=5,
        columns=("id", "qty"),
        where=("qty>3", "city=Oslo"),
        as_of="20261118101500123",
        mode="read_optimized",
        use_metadata=False,
    )


def test_storage_options_keep_their_text_unless_it_can_only_be_json() -> None:
    texts = ["key=123", "anon=false", 'client_kwargs={"verify": true}', "secret=a=b", "x={", "y="]
    line = [part for text in texts for part in ("--option", text)]
    assert parse(["files", "s3://lake", *line]).options == {
        "key": "123",
        "anon": False,
        "client_kwargs": {"verify": True},
        "secret": "a=b",
        "x": "{",
        "y": "",
    }


def test_options_of_one_command_line_do_not_reach_the_next() -> None:
    parse(["files", "/lake", "--option", "a=1"])
    assert parse(["files", "/lake"]).options == {}


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("", "COMMAND"),
        ("raed /lake", "'raed'"),
        ("read", "PATH"),
        ("read /lake --limit -1", "not a number of rows"),
        ("read /lake --limit many", "not a number of rows"),
        ("read /lake --colums id", "--colums"),
        ("read /lake --columns id,,qty", "empty name"),
        ("read /lake --output xml", "'xml'"),
        ("read /lake --option key", "NAME=VALUE"),
        ("timeline /lake --as-of 2026", "--as-of"),
        ("read /lake --until 2026", "--until needs --since"),
        ("read /lake --since 2026 --as-of 2026", "can't be combined"),
        ("read /lake --since 2026 --mode read_optimized", "can't be combined"),
        ("read /lake --since 2026 --no-metadata", "can't be combined"),
    ],
)
def test_a_bad_command_line_is_refused(line: str, part: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(line.split())
    assert refused.value.code == "bad_arguments"
    assert part in refused.value.what
    assert "--help" in refused.value.now


def test_help_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        parse(["read", "--help"])
    assert left.value.code == 0
    assert "--where" in capsys.readouterr().out
