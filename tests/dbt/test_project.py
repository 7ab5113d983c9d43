"""The dbt project of sql_examples runs, and its hooks put the table in shape that it reads."""

import os
import subprocess
from pathlib import Path

import pytest

from lakewarden.table import Table

PROJECT = Path(__file__).parents[2] / "sql_examples" / "dbt"
PYTHON = os.environ.get("LAKEWARDEN_DBT_PYTHON", "python")


@pytest.mark.timeout(900)
def test_hooks_of_a_model_call_table_services(disk_path: Path) -> None:
    ended = subprocess.run(
        [PYTHON, PROJECT / "run.py", disk_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Done. PASS=1 WARN=0 ERROR=0" in ended.stdout
    orders = Table(str(disk_path / "warehouse" / "orders"))
    rows = orders.read_arrow(columns=["id", "qty"]).sort_by("id").to_pylist()
    assert [row["qty"] for row in rows] == [3, 3, 5]
    actions = [instant.action.value for instant in orders.timeline().completed()]
    assert actions.count("commit") == 1
    assert not orders.timeline().pending()
