"""The judges as the tests call them: each answers from a process of its own."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lakewarden.java_home import java_home
from tests.canonical import Row
from tests.interop.lines import CHECKOUT, LineClient

HOME = CHECKOUT / ".interop"


class RustReader(LineClient):
    """The Rust implementation of Hudi."""

    def __init__(self, home: Path = HOME) -> None:
        command = [home / "venv" / "bin" / "python", "-m", "tests.interop.rust_reader"]
        super().__init__(command, environment={}, log=home / f"rust{_worker()}.log")

    def read(self, table: Path) -> list[Row]:
        rows: list[Row] = self.ask("read", table=str(table))
        return rows


class JavaJudge(LineClient):
    """Java Hudi on Spark; for arguments see the commands in `judge.service`."""

    def __init__(self, home: Path = HOME, name: str = "java") -> None:
        (bundle,) = (home / "jars").glob("*.jar")
        command = [home / "venv" / "bin" / "python", "-m", "tests.interop.judge.service", bundle]
        environment = {"JAVA_HOME": os.fspath(java_home())}
        super().__init__(command, environment=environment, log=home / f"{name}{_worker()}.log")

    def read(self, table: Path, **how: Any) -> list[Row]:
        rows: list[Row] = self.ask("read", table=str(table), **how)
        return rows

    def sql(
        self, table: Path, *statements: str, settings: Mapping[str, str] | None = None
    ) -> list[Row]:
        rows: list[Row] = self.ask(
            "sql", table=str(table), statements=statements, settings=settings
        )
        return rows

    def write(
        self,
        table: Path,
        rows: Sequence[Mapping[str, object]],
        *,
        columns: Mapping[str, str],
        options: Mapping[str, str],
    ) -> None:
        self.ask("write", table=str(table), rows=rows, columns=columns, options=options)

    def validate(self, table: Path, *checks: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self.ask("validate", table=str(table), checks=checks)
        return {check: findings for check, findings in found.items() if findings}

    def timeline(self, table: Path) -> dict[str, Any]:
        answer: dict[str, Any] = self.ask("timeline", table=str(table))
        return answer

    def file_slices(self, table: Path, **how: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.ask("file_slices", table=str(table), **how)
        return answer


def _worker() -> str:
    """What tells the judges of several test processes apart."""
    return os.environ.get("PYTEST_XDIST_WORKER", "")
