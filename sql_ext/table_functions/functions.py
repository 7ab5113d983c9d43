"""All sessions: functions of one session become those of every session that is made later.

`lakewarden_attempts`: the attempts at what is pending.

`lakewarden_files`: the files that a read of a table looks at.

`lakewarden_missing_partitions`: what pending plans leave to the next ones.

`lakewarden_partitions`: the partitions of a table, and what is in them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from lakewarden.engine.file_groups.file_names import BaseFile, DataFile
from lakewarden.engine.services.inspection.state.plans import Verdict
from lakewarden.procedures.declaring.caller import Caller, open_table
from lakewarden.procedures.declaring.declaration import Call, TablePath, procedure
from lakewarden.procedures.declaring.texts import moment_of


def publish(spark: SparkSession, names: Iterable[str]) -> None:
    """Put functions of a session where new sessions of its JVM take theirs from."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    catalyst = gateway.jvm.org.apache.spark.sql.catalyst
    module: Any = getattr(catalyst.analysis, "TableFunctionRegistry$")
    everywhere = module.__getattr__("MODULE$").builtin()
    session: Any = spark._jsparkSession
    here = session.sessionState().tableFunctionRegistry()
    mine = _identifiers(here)
    # How far names are qualified differs between releases of Spark.
    model: Any = next(iter(_identifiers(everywhere).values()))
    for name in names:
        # Both of it at once can be asked for since 4.3 only.
        info, builder = (
            found(mine[name]).get() for found in (here.lookupFunction, here.lookupFunctionBuilder)
        )
        identifier = catalyst.FunctionIdentifier(name, model.database(), model.catalog())
        everywhere.registerFunction(identifier, info, builder)


def _identifiers(registry: Any) -> Mapping[str, JavaObject]:
    found = registry.listFunction()
    identifiers = [found.apply(place) for place in range(found.size())]
    return {one.funcName(): one for one in identifiers}


@procedure("lakewarden_attempts")
class Attempts(Call):
    """The attempts at what is pending; only the newest one at an instant can be live."""

    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        service: str
        attempt: int
        owner: str
        host: str
        process: str
        engine_version: str
        started_at: datetime
        age_seconds: float | None
        is_newest: bool
        is_live: bool
        step: str | None
        done: int
        total: int
        last_beat_at: datetime | None
        expires_at: datetime | None

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in open_table(caller, None, self.path).attempts():
            started_at = moment_of(one.started_at_ms)
            assert started_at is not None
            yield self.Row(
                instant=one.instant,
                service=one.service,
                attempt=one.attempt,
                owner=one.owner,
                host=one.host,
                process=one.process,
                engine_version=one.engine_version,
                started_at=started_at,
                age_seconds=one.age_seconds,
                is_newest=one.is_newest,
                is_live=one.is_live,
                step=one.step,
                done=one.done,
                total=one.total,
                last_beat_at=moment_of(one.last_heartbeat_at_ms),
                expires_at=moment_of(one.expires_at_ms),
            )


@procedure("lakewarden_files")
class Files(Call):
    """The base and log files of the newest slices."""

    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition: str
        file_id: str
        base_instant: str
        kind: Annotated[str, "base or log"]
        file_name: str
        instant: Annotated[str, "Of the write that made it."]
        bytes: int

    def run(self, caller: Caller) -> Iterable[Row]:
        for slice_ in open_table(caller, None, self.path).file_slices():
            base: tuple[DataFile, ...] = (slice_.base_file,) if slice_.base_file else ()
            for file in (*base, *slice_.log_files):
                yield self.Row(
                    partition=slice_.partition,
                    file_id=slice_.file_id,
                    base_instant=slice_.base_instant,
                    kind="base" if isinstance(file, BaseFile) else "log",
                    file_name=file.name,
                    instant=file.instant,
                    bytes=file.size_bytes,
                )


@procedure("lakewarden_missing_partitions")
class MissingPartitions(Call):
    """The partitions that pending plans leave to the next ones."""

    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: Annotated[str, "Of the plan."]
        service: str
        partition: str
        reason: str

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, None, self.path)
        for plan in table.plans():
            if not plan.missing_partitions_count:
                continue
            for one in table.explain_plan(plan.instant):
                if one.verdict is Verdict.SKIPPED:
                    yield self.Row(
                        instant=plan.instant,
                        service=plan.service,
                        partition=one.partition,
                        reason=one.reason,
                    )


@procedure("lakewarden_partitions")
class Partitions(Call):
    """The partitions of a table with what a read finds in them."""

    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        partition: str
        file_groups_count: int
        base_files_count: int
        log_files_count: int
        bytes: int

    def run(self, caller: Caller) -> Iterable[Row]:
        table = open_table(caller, None, self.path)
        slices = table.file_slices()
        for partition in table.partitions():
            inside = [slice_ for slice_ in slices if slice_.partition == partition]
            yield self.Row(
                partition=partition,
                file_groups_count=len(inside),
                base_files_count=sum(slice_.base_file is not None for slice_ in inside),
                log_files_count=sum(len(slice_.log_files) for slice_ in inside),
                bytes=sum(slice_.size_bytes for slice_ in inside),
            )
