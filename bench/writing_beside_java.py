"""Writing beside Java: 2 million rows loaded, 220,000 upserted, 20,000 deleted.

All begin with Parquet files and end with a completed commit that Java and we both read back.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench import own_writer, services
from bench.measure import OURS, Clocked, Measure, Rounds, faster, in_turns
from bench.own_writer import GZIP
from bench.places import built_once
from bench.private_copies import new_folder, private_copy
from bench.services import MeasuredService
from bench.write_workload import CHECKED_COLUMN, Checksum, WriteWorkload, write_sources

WORKLOAD = WriteWorkload(rows=2_000_000, updates=200_000, inserts=20_000, deletes=20_000)
ZSTD = {"hoodie.parquet.compression.codec": "zstd"}
NO_SMALL_FILES = {"hoodie.parquet.small.file.limit": "0"}
IN_GZIP = f"{OURS} in gzip"
ON_SPARK = f"{OURS} on Spark"

INTO_NEW = (
    "from the path of a Parquet file with the rows to the completed commit of a new table, with "
    "the metadata table's `files` and `column_stats`"
)
INTO_COPY = (
    "from the path of a Parquet file with the rows to the completed commit, with the metadata "
    "table's `files` and `column_stats`, index SIMPLE, each on a copy of one table that Java has "
    "loaded in gzip, two files of a million rows"
)
DEFAULTS = "our default is zstd at level 1, Java's gzip"
BOTH_GZIP = "our gzip has level 1, Java's the default of its codec"
BOTH_ZSTD = "our zstd has level 1, Java's the default of its codec"
SMALL_FILES = (
    "by its default for small files Java rewrites one of the two to put the 20,000 new rows there; "
    "we begin a small one with them, and write nothing else but logs"
)

# Writes rows into a table and says the seconds that took. Named are `table` and `source`, both
# paths, the `operation`, the `kind` of table and further `options`.
Write = Callable[..., float]


@dataclass(frozen=True, slots=True)
class Writer:
    """A writer, and the settings that it gets besides."""

    name: str
    write: Write
    options: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What is written, and what the table holds then; without a start it is a new one."""

    operation: str
    kind: str
    source: Path
    expected: Checksum
    start: Path | None = None

    def executed(self, writer: Writer, *checks: Callable[[str], Checksum]) -> float:
        place = new_folder() if self.start is None else private_copy(self.start)
        with place as folder:
            table = str(folder)
            seconds = writer.write(
                table=table,
                source=str(self.source),
                operation=self.operation,
                kind=self.kind,
                options=writer.options,
            )
            assert all(check(table) == self.expected for check in checks), writer.name
        return seconds

    def clocked(self, writer: Writer, *checks: Callable[[str], Checksum]) -> Clocked:
        return partial(self.executed, writer, *checks)


def run() -> list[Measure]:
    """Every task once by everybody, read back by both sides; then they take turns."""
    with services.java_writer() as java, services.spark_writer() as spark:
        ours = (Writer(OURS, own_writer.write), Writer(ON_SPARK, partial(spark.ask, "write")))
        contest = _Contest(java, ours)
        return [*contest.bulk_inserts(), *contest.upserts(), *contest.logs(), *contest.deletes()]


class _Contest:
    """Java against each of our ways of writing."""

    def __init__(self, service: MeasuredService, ours: tuple[Writer, ...]) -> None:
        self._service = service
        self._java = Writer(service.ask("versions"), partial(service.ask, "write"))
        self._ours = ours
        self._sources = write_sources(WORKLOAD)

    def bulk_inserts(self) -> Iterator[Measure]:
        task = Task("bulk_insert", "cow", self._sources.base, self._sources.loaded())
        title = "bulk insert of 2,000,000 rows into a new copy-on-write table"
        yield from self._in_all_codecs(title, task, INTO_NEW, {OURS: 4, ON_SPARK: 2})

    def upserts(self) -> Iterator[Measure]:
        task = self._upsert("cow")
        title = "upsert of 220,000 rows into 2,000,000, copy on write"
        yield from self._in_all_codecs(title, task, INTO_COPY, {OURS: 6, ON_SPARK: 3})

    def logs(self) -> Iterator[Measure]:
        task = self._upsert("mor")
        title = "upsert of 220,000 rows into 2,000,000, merge on read"
        rounds = self._rounds(task, self._java, *self._ours)
        includes = f"{INTO_COPY}; {SMALL_FILES}"
        yield from self._bounded(title, rounds, includes, {OURS: 20, ON_SPARK: 5})
        yield self._reported(
            f"{title}, new rows in new files",
            task,
            f"{INTO_COPY}; small files of Java stay as they are by its setting, so that it writes"
            " as little as we do",
            replace(self._java, name=f"{self._java.name}, appending", options=NO_SMALL_FILES),
        )

    def deletes(self) -> Iterator[Measure]:
        for kind, name in (("cow", "copy on write"), ("mor", "merge on read")):
            title = f"delete of 20,000 keys among 2,000,000, {name}"
            expected = self._sources.deleted()
            task = Task("delete", kind, self._sources.delete, expected, self._loaded(kind))
            includes = f"{INTO_COPY}; rows to delete have their key and ordering value"
            yield self._reported(title, task, includes, self._java)

    def _upsert(self, kind: str) -> Task:
        expected = self._sources.upserted()
        return Task("upsert", kind, self._sources.upsert, expected, self._loaded(kind))

    def _in_all_codecs(
        self, title: str, task: Task, includes: str, at_least: Mapping[str, float]
    ) -> Iterator[Measure]:
        """Both with their defaults, for which there are bounds; then both with the same codec."""
        in_gzip = replace(self._ours[0], name=IN_GZIP, options=GZIP)
        rounds = self._rounds(task, self._java, *self._ours, in_gzip)
        yield from self._bounded(title, rounds, f"{includes}; {DEFAULTS}", at_least)
        yield faster(
            f"{title}, both in gzip",
            rounds,
            self._java.name,
            at_least=None,
            includes=f"{includes}; {BOTH_GZIP}",
            ours=IN_GZIP,
        )
        in_zstd = replace(self._java, name=f"{self._java.name}, in zstd", options=ZSTD)
        yield self._reported(f"{title}, both in zstd", task, f"{includes}; {BOTH_ZSTD}", in_zstd)

    def _bounded(
        self, title: str, rounds: Rounds, includes: str, at_least: Mapping[str, float]
    ) -> Iterator[Measure]:
        for writer in self._ours:
            yield faster(
                title if writer.name == OURS else f"{title}, on Spark both",
                rounds,
                self._java.name,
                at_least=at_least[writer.name],
                includes=includes,
                ours=writer.name,
            )

    def _reported(self, title: str, task: Task, includes: str, java: Writer) -> Measure:
        """One round, for what nothing is required of."""
        turns = {writer.name: self._checked(task, writer) for writer in (java, self._ours[0])}
        rounds = in_turns(turns, rounds=1, warm_ups=0)
        return faster(title, rounds, java.name, at_least=None, includes=includes)

    def _rounds(self, task: Task, *writers: Writer) -> Rounds:
        """Rounds after everybody's first write, which warms up and is read back by both sides."""
        for writer in writers:
            self._checked(task, writer)()
        turns = {writer.name: task.clocked(writer) for writer in writers}
        return in_turns(turns, rounds=3, warm_ups=0)

    def _checked(self, task: Task, writer: Writer) -> Clocked:
        return task.clocked(writer, own_writer.checksum, self._read_by_java)

    def _read_by_java(self, table: str) -> Checksum:
        found: Checksum = self._service.ask("checksum", table=table, column=CHECKED_COLUMN)
        return found

    def _loaded(self, kind: str) -> Path:
        """The rows in a table that Java has made."""
        return built_once(f"java-{kind}-{WORKLOAD}", partial(self._load, kind=kind))

    def _load(self, folder: Path, kind: str) -> None:
        source = str(self._sources.base)
        self._java.write(table=str(folder), source=source, operation="bulk_insert", kind=kind)
