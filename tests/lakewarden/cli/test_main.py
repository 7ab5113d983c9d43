"""Commands from their arguments to their output and exit code."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lakewarden import (
    Conflict,
    CorruptTable,
    Defect,
    InvalidRequest,
    LakewardenError,
    Table,
    Unavailable,
    Unsettled,
)
from lakewarden.cli import main
from lakewarden.cli.entry import exit_code
from tests.golden_tables import GoldenTable

NAME = "mor_nested_partitions"
COMMAND = [sys.executable, "-m", "lakewarden"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The lines a successful command prints."""
    code = main(arguments)
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, "")
    return printed.out.splitlines()


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in run(capsys, *arguments, "--output", "json")]


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code and the message of a failing command."""
    code = main(arguments)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return code, printed.err.rstrip("\n")


def test_timeline(capsys: pytest.CaptureFixture[str], golden: GoldenTable) -> None:
    path = str(golden(NAME))
    found = rows(capsys, "timeline", path)
    assert [row["requested"] for row in found] == [
        instant.requested for instant in Table(path).timeline().instants
    ]
    assert {row["state"] for row in found} == {"completed"}


def test_timeline_as_a_table(capsys: pytest.CaptureFixture[str], golden: GoldenTable) -> None:
    header, rule, first, *_ = run(capsys, "timeline", str(golden(NAME)))
    assert header.split() == ["requested", "action", "state", "completed"]
    assert set(rule) == {"-", " "}
    assert first.split()[1:3] == ["deltacommit", "completed"]


def test_partitions(capsys: pytest.CaptureFixture[str], golden: GoldenTable) -> None:
    path = str(golden(NAME))
    found = [row["partition"] for row in rows(capsys, "partitions", path)]
    assert tuple(found) == Table(path).partitions()


def test_files_of_one_partition(capsys: pytest.CaptureFixture[str], golden: GoldenTable) -> None:
    path = str(golden(NAME))
    partition = Table(path).partitions()[0]
    found = rows(capsys, "files", path, "--partition", partition)
    assert [row["file_id"] for row in found] == [
        slice_.file_id for slice_ in Table(path).file_slices(partition)
    ]
    assert {row["partition"] for row in found} == {partition}


def test_indexes(capsys: pytest.CaptureFixture[str], golden: GoldenTable) -> None:
    found = rows(capsys, "indexes", str(golden("mor_secondary_index")))
    assert {str(row["type"]) for row in found} >= {"files", "record_index", "secondary_index"}


def test_read_with_columns_and_conditions(
    capsys: pytest.CaptureFixture[str], golden: GoldenTable
) -> None:
    path = str(golden("mor_all_types"))
    found = rows(capsys, "read", path, "--columns", "id,i", "--where", "id >= k3")
    expected = Table(path).read_arrow(columns=["id", "i"], filter=[("id", ">=", "k3")])
    assert found == expected.to_pylist()


@pytest.mark.parametrize("output", ["json", "table"])
def test_read_shows_values_of_all_types(
    output: str, capsys: pytest.CaptureFixture[str], golden: GoldenTable
) -> None:
    path = str(golden("cow_all_types"))
    lines = run(capsys, "read", path, "--output", output)
    headers = 2 if output == "table" else 0
    assert len(lines) == len(Table(path).read_arrow()) + headers


def test_maps_are_objects(capsys: pytest.CaptureFixture[str], golden: GoldenTable) -> None:
    found = rows(capsys, "read", str(golden("cow_all_types")), "--columns", "m")
    assert any(isinstance(row["m"], dict) for row in found)
    assert not any(isinstance(row["m"], list) for row in found)


def test_read_of_an_earlier_time(capsys: pytest.CaptureFixture[str], golden: GoldenTable) -> None:
    path = str(golden("mor_all_types"))
    first = Table(path).timeline().instants[0].requested
    found = rows(capsys, "read", path, "--as-of", first, "--columns", "id")
    assert len(found) == len(Table(path).read_arrow(as_of=first))


def test_read_of_changes(capsys: pytest.CaptureFixture[str], golden: GoldenTable) -> None:
    path = str(golden("mor_all_types"))
    first = Table(path).timeline().instants[0].completed
    assert first is not None
    found = rows(capsys, "read", path, "--since", first, "--columns", "id")
    assert found == Table(path).changes_arrow(first, columns=["id"]).to_pylist()


def test_limit(capsys: pytest.CaptureFixture[str], golden: GoldenTable) -> None:
    path = str(golden("mor_all_types"))
    assert len(rows(capsys, "read", path, "--limit", "3")) == 3
    assert rows(capsys, "timeline", path, "--limit", "0") == []


def test_explain(capsys: pytest.CaptureFixture[str], golden: GoldenTable) -> None:
    path = str(golden("mor_all_types"))
    found = rows(capsys, "explain", path, "--where", "p = a")
    assert {str(row["verdict"]) for row in found} == {"read", "skipped"}


def test_a_missing_table_says_what_was_looked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, message = failure(capsys, "timeline", str(tmp_path))
    assert code == 1
    assert message.startswith(f"no_table: No Hudi table is at {tmp_path}.")
    assert ".hoodie/hoodie.properties" in message


def test_a_bad_command_line_is_an_error_and_no_retry(capsys: pytest.CaptureFixture[str]) -> None:
    code, message = failure(capsys, "read", "/lake", "--limit", "x")
    assert code == 1
    assert message.startswith("bad_arguments: Argument --limit:")


def test_an_unknown_column_is_an_error(
    capsys: pytest.CaptureFixture[str], golden: GoldenTable
) -> None:
    code, message = failure(capsys, "read", str(golden(NAME)), "--columns", "nope")
    assert (code, message.split()[0]) == (1, "unknown_column:")


def test_storage_out_of_reach_asks_for_a_retry(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # A link to itself: the system gives up, and can't say whether there is a table.
    (tmp_path / ".hoodie").symlink_to(".hoodie")
    code, message = failure(capsys, "timeline", str(tmp_path))
    assert code == 2
    assert message.startswith("storage_unavailable:")


def test_rows_read_before_a_failure_are_printed(
    capsys: pytest.CaptureFixture[str], golden_copy: GoldenTable
) -> None:
    path = golden_copy("mor_nested_partitions")
    *_, last = Table(str(path)).file_slices()
    assert last.base_file is not None
    (path / last.path(last.base_file)).write_bytes(b"no parquet")
    assert main(["read", str(path), "--output", "json"]) == 1
    printed = capsys.readouterr()
    assert printed.out
    assert printed.err.startswith("corrupt_file:")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (InvalidRequest, 1),
        (CorruptTable, 1),
        (Unsettled, 1),
        (Defect, 1),
        (Unavailable, 2),
        (Conflict, 3),
    ],
)
def test_exit_code_of(kind: type[LakewardenError], expected: int) -> None:
    assert exit_code(kind("code", what="It happened.", why="So.", now="Wait.")) == expected


def test_what_nobody_foresaw_is_told_as_our_fault(capsys: pytest.CaptureFixture[str]) -> None:
    code = main([7])  # type: ignore[list-item]
    message = capsys.readouterr().err
    assert code == 1
    assert message.startswith("unexpected_error: TypeError:")
    assert "Traceback" not in message


def test_an_interrupt_ends_quietly(
    capsys: pytest.CaptureFixture[str], golden: GoldenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(io.StringIO):
        def write(self, _: str) -> int:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdout", Interrupted())
    assert main(["timeline", str(golden(NAME))]) == 130
    assert capsys.readouterr().err == ""


def test_as_a_process(golden: GoldenTable) -> None:
    arguments = ["partitions", str(golden(NAME)), "--output", "json"]
    ended = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.count("\n") == len(Table(str(golden(NAME))).partitions())


def test_a_reader_that_has_enough_is_no_error(golden: GoldenTable) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    arguments = ["timeline", str(golden(NAME))]
    ended = subprocess.run(
        [*COMMAND, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_output_is_utf_8_whatever_the_terminal_and_the_names_are(
    golden: GoldenTable, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    shutil.copytree(golden("cow_partition_url_encoded"), path)
    ended = subprocess.run(
        [*COMMAND, "partitions", str(path), "--output", "json"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert ended.stderr == b""
    found = {json.loads(line)["partition"] for line in ended.stdout.decode("utf-8").splitlines()}
    assert "p=ü" in found
