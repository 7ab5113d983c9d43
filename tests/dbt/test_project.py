"""The dbt project of sql_examples is built twice, and its hooks put the table in shape."""

import os
import subprocess
from pathlib import Path

import pytest

from lakewarden.table import Table

PROJECT = Path(__file__).parents[2] / "sql_examples" / "dbt"
PYTHON = os.environ.get("LAKEWARDEN_DBT_PYTHON", "python")


@pytest.mark.timeout(900)
def test_models_snapshots_and_tests_are_built_twice(disk_path: Path) -> None:
    ended = subprocess.run(
        [PYTHON, PROJECT / "run.py", disk_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("WARN=0 ERROR=0 SKIP=0") == 2
    assert rows_of(disk_path, "orders", "id", "qty") == [("1", 3), ("2", 8), ("3", 5), ("4", 1)]
    assert rows_of(disk_path, "orders_merged", "id", "qty", "ts") == [
        ("1", 3, 1),
        ("2", 8, 2),
        ("3", 5, 1),
        ("4", 1, 3),
    ]
    appended = rows_of(disk_path, "orders_appended", "id", "qty")
    assert appended == [("1", 3), ("1", 3), ("2", 3), ("2", 8), ("3", 5), ("3", 5), ("4", 1)]
    by_day = rows_of(disk_path, "orders_by_day", "id", "ts", "qty")
    assert by_day == [("1", 1, 3), ("2", 1, 3), ("2", 2, 8), ("3", 1, 5), ("4", 3, 1)]
    then = Table(str(disk_path / "warehouse" / "orders_then")).read_arrow().to_pylist()
    known = sorted((row["id"], row["qty"], row["dbt_valid_to"] is None) for row in then)
    assert known == [
        ("1", 3, True),
        ("2", 3, False),
        ("2", 8, True),
        ("3", 5, True),
        ("4", 1, True),
    ]
    orders = Table(str(disk_path / "warehouse" / "orders"))
    actions = [instant.action.value for instant in orders.timeline().completed()]
    assert actions.count("commit") == 2
    assert not orders.timeline().pending()


def rows_of(folder: Path, name: str, *columns: str) -> list[tuple[object, ...]]:
    """The rows of a model's table, which is one of Hudi's."""
    found = Table(str(folder / "warehouse" / name)).read_arrow(columns=list(columns))
    return sorted(tuple(row.values()) for row in found.to_pylist())
