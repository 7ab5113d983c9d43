"""Readers and writers in processes of their own: Java Hudi, hudi-rs, our Spark path, lake formats.

Each answers one request per line (see `tests.interop.lines`) and clocks itself, so that neither the
start of a process nor the exchange counts.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.places import CHECKOUT, WORK
from lakewarden.java_home import java_home
from tests.interop.lines import LineClient

# Another folder prepared by `tests/interop/setup.sh` may be named here.
HOME = Path(os.environ.get("LAKEWARDEN_INTEROP", CHECKOUT / ".interop"))

# What the lake formats run on, and where it is installed.
LOCK = CHECKOUT / "bench" / "peers.lock"
PEERS = WORK / "peers"
DELTA = ("io.delta:delta-spark_2.12:3.3.2", "io.delta:delta-storage:3.3.2")


class MeasuredService(LineClient):
    """A process that opens tables, reads or writes them, and says how long that took."""

    def __init__(self, python: Path, module: str, *arguments: Path | str) -> None:
        name = module.rpartition(".")[2]
        environment = {"JAVA_HOME": os.fspath(java_home()), "PYSPARK_PYTHON": os.fspath(python)}
        super().__init__(
            [python, "-m", module, *arguments], environment=environment, log=WORK / f"{name}.log"
        )

    def clocked(self, command: str, **arguments: Any) -> Callable[[], float]:
        """A request as something to measure."""
        return lambda: float(self.ask(command, **arguments))


def java_hudi() -> MeasuredService:
    """Java Hudi on its own Spark."""
    return _java("bench.java_reader")


def java_writer() -> MeasuredService:
    """Java Hudi on its own Spark, writing."""
    return _java("bench.java_writer")


def java_planner() -> MeasuredService:
    """Java Hudi on its own Spark, planning compactions."""
    return _java("bench.java_planner")


def java_compactor() -> MeasuredService:
    """Java Hudi on its own Spark, compacting."""
    return _java("bench.java_compactor")


def compactor() -> MeasuredService:
    """Our compaction, and pyarrow's floor beside it."""
    return MeasuredService(Path(sys.executable), "bench.own_compactor")


def java_clusterer() -> MeasuredService:
    """Java Hudi on its own Spark, clustering."""
    return _java("bench.java_clusterer")


def java_rival() -> MeasuredService:
    """Java Hudi on its own Spark, two writers of one table."""
    return _java("bench.java_rival")


def _java(module: str) -> MeasuredService:
    _prepare()
    (bundle,) = (HOME / "jars").glob("*.jar")
    return MeasuredService(HOME / "venv" / "bin" / "python", module, bundle)


def java_indexer() -> MeasuredService:
    """Java Hudi on its own Spark, building indexes."""
    _prepare()
    (bundle,) = (HOME / "jars").glob("*.jar")
    return MeasuredService(HOME / "venv" / "bin" / "python", "bench.java_indexer", bundle)


def java_stream() -> MeasuredService:
    """Java Hudi's sink for streams, on its own Spark."""
    _prepare()
    (bundle,) = (HOME / "jars").glob("*.jar")
    python = HOME / "venv" / "bin" / "python"
    return MeasuredService(python, "bench.peer_streams", "hudi", bundle)


def delta_stream() -> MeasuredService:
    """MERGE into Delta for each batch, on the Spark of the interop tests."""
    _prepare()
    jars = ",".join(os.fspath(_fetched(artifact)) for artifact in DELTA)
    return MeasuredService(HOME / "venv" / "bin" / "python", "bench.peer_streams", "delta", jars)


def own_stream() -> MeasuredService:
    """Our streams on Spark."""
    return MeasuredService(Path(sys.executable), "bench.own_stream")


def _fetched(artifact: str) -> Path:
    """A jar of Maven's, which is fetched when it is missing."""
    _, name, version = artifact.split(":")
    jar = WORK / "jars" / f"{name}-{version}.jar"
    if not jar.is_file():
        copy = ("mvn", "--quiet", "--batch-mode", "dependency:copy")
        asked = (f"-Dartifact={artifact}:jar", f"-DoutputDirectory={jar.parent}")
        subprocess.run([*copy, *asked], check=True)
    return jar


def rust_hudi() -> MeasuredService:
    """hudi-rs, through its Python package."""
    _prepare()
    return MeasuredService(HOME / "venv" / "bin" / "python", "bench.rust_reader")


def spark() -> MeasuredService:
    """Our Spark path, and Spark's own Parquet scan."""
    return MeasuredService(Path(sys.executable), "bench.spark_reader")


def spark_writer() -> MeasuredService:
    """Our writes on Spark."""
    return MeasuredService(Path(sys.executable), "bench.spark_writer")


def delta_rs() -> MeasuredService:
    """delta-rs, through its Python package."""
    return _lake("bench.delta_writer")


def ducklake() -> MeasuredService:
    """DuckLake, in DuckDB."""
    return _lake("bench.ducklake_writer")


def pyiceberg() -> MeasuredService:
    """PyIceberg, with a catalog of its own."""
    return _lake("bench.iceberg_writer")


def _lake(module: str) -> MeasuredService:
    """A lake format in the environment of `peers.lock`, which is made when it is missing."""
    installed = PEERS / "installed.lock"
    if not installed.is_file() or installed.read_text() != LOCK.read_text():
        subprocess.run([CHECKOUT / "scripts" / "venv.sh", PEERS, LOCK], check=True)
        installed.write_text(LOCK.read_text())
    return MeasuredService(PEERS / "bin" / "python", module)


def _prepare() -> None:
    """Finished steps are skipped; what fails says why."""
    subprocess.run([CHECKOUT / "tests" / "interop" / "setup.sh", HOME], check=True)
