"""Java as a writer of the tables of `tests.writing`: writes and services in its own words."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lakewarden import Table
from lakewarden.engine.table.config import kept_settings
from tests.interop.judges import JavaJudge
from tests.writing.model import ModelRow, Write

COLUMNS = {"id": "string", "p": "string", "ts": "bigint", "v": "double", "name": "string"}

# Small tables need neither a server for markers nor many tasks, and services wait to be called.
SMALL = {
    "hoodie.archive.automatic": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.write.markers.type": "DIRECT",
}
# What Java does by itself when nobody tells it otherwise, only sooner.
BY_ITSELF = {
    "hoodie.clean.commits.retained": "3",
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.keep.max.commits": "6",
    "hoodie.keep.min.commits": "5",
}
CREATE_INDEX_LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
}
OPERATIONS = {
    "upsert": "upsert",
    "insert": "insert",
    "bulk_insert": "bulk_insert",
    "delete": "delete",
    "overwrite_partitions": "insert_overwrite",
    "delete_partitions": "delete_partition",
}


class JavaWriter:
    """Java as it writes one table, with the table's own options."""

    def __init__(
        self, java: JavaJudge, path: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self._java = java
        self._path = path
        self._settings = SMALL if settings is None else settings

    def carry_out(self, write: Write) -> None:
        """A write of the model, by the DataFrame writer."""
        paths = ",".join(f"p={value}" for value in write.partitions)
        dropped = {"hoodie.datasource.write.partitions.to.delete": paths} if paths else {}
        self.write(write.rows, OPERATIONS[write.kind], COLUMNS, dropped)

    def write(
        self,
        rows: Sequence[ModelRow],
        operation: str,
        columns: Mapping[str, str],
        given: Mapping[str, str] | None = None,
    ) -> None:
        """Rows by the DataFrame writer."""
        options = self._options() | {"hoodie.datasource.write.operation": operation}
        self._java.write(self._path, rows, columns=columns, options={**options, **(given or {})})

    def carry_out_in_sql(self, write: Write) -> None:
        """The same by a statement, where there is one and it has something to do."""
        match write.kind:
            case "upsert" if write.rows:
                self.sql(
                    f"MERGE INTO t USING ({_selected(write.rows)}) s ON {self._same_record()}"
                    " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                )
            case "insert" | "bulk_insert" if write.rows:
                self.sql(f"INSERT INTO t ({', '.join(COLUMNS)}) {_selected(write.rows)}")
            case "delete" if write.rows:
                self.sql(f"DELETE FROM t WHERE {self._one_of(write.rows)}")
            case "delete_partitions":
                for value in write.partitions:
                    self.sql(f"ALTER TABLE t DROP PARTITION (p = '{value}')")
            case _:
                self.carry_out(write)

    def sql(self, *statements: str, **settings: str) -> None:
        """Statements on the table `t`; settings are `hoodie.` options with `__` for a dot."""
        given = {f"hoodie.{name.replace('__', '.')}": value for name, value in settings.items()}
        self._java.sql(self._path, *statements, settings={**self._options(), **given})

    def compact(self) -> None:
        self.sql(
            "CALL run_compaction(op => 'schedule', table => 't')",
            "CALL run_compaction(op => 'run', table => 't')",
            compact__inline__max__delta__commits="1",
        )

    def cluster(self) -> None:
        self.sql("CALL run_clustering(table => 't', op => 'scheduleAndExecute')")

    def clean(self) -> None:
        self.sql("CALL run_clean(table => 't', retain_commits => 1)")

    def archive(self) -> None:
        self.sql(
            "CALL archive_commits(table => 't', min_commits => 2, max_commits => 3,"
            " retain_commits => 1)"
        )

    def roll_back_last(self, *, deltacommits_until_compaction: int = 100) -> None:
        """Take back the newest write; see `differences` for what the metadata table must not do."""
        last = Table(str(self._path)).timeline().instants[-1].requested
        self.sql(
            f"CALL rollback_to_instant(table => 't', instant_time => '{last}')",
            metadata__compact__max__delta__commits=str(deltacommits_until_compaction),
        )

    def build_record_index(self) -> None:
        settings = self._options() | CREATE_INDEX_LOCK
        self._java.sql(self._path, "CREATE INDEX record_index ON t (id)", settings=settings)

    def _options(self) -> dict[str, str]:
        """What a writer of Java has to be told of this table."""
        properties = kept_settings(Table(str(self._path)).properties)
        partitions = properties.get("hoodie.table.metadata.partitions", "").split(",")
        options = {
            "hoodie.datasource.write.partitionpath.field": properties.get(
                "hoodie.table.partition.fields", ""
            ),
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.metadata.enable": str("files" in partitions).lower(),
        }
        options |= self._settings
        is_by_partition = properties.get("hoodie.index.type") == "RECORD_LEVEL_INDEX"
        if "record_index" in partitions:
            # Java drops an index that its own settings don't name.
            scope = "" if is_by_partition else "global."
            options[f"hoodie.metadata.{scope}record.level.index.enable"] = "true"
        if is_by_partition:
            # Without the server Java can't write tables with this index, not even its own.
            options["hoodie.embed.timeline.server"] = "true"
        same = ("hoodie.table.name", "hoodie.index.type", "hoodie.bucket.index.num.buckets")
        table_options = {name: properties[name] for name in same if name in properties}
        return table_options | options

    def _is_partitioned(self) -> bool:
        return bool(Table(str(self._path)).config.partitions.fields)

    def _same_record(self) -> str:
        return "t.id = s.id AND t.p = s.p" if self._is_partitioned() else "t.id = s.id"

    def _one_of(self, rows: Sequence[ModelRow]) -> str:
        if not self._is_partitioned():
            return f"id IN ({', '.join(_literal(row['id']) for row in rows)})"
        records = (f"(id = {_literal(row['id'])} AND p = {_literal(row['p'])})" for row in rows)
        return " OR ".join(records)


def _selected(rows: Sequence[ModelRow]) -> str:
    """Rows as a query."""
    values = ", ".join(f"({', '.join(_typed(row, name) for name in COLUMNS)})" for row in rows)
    return f"SELECT * FROM VALUES {values} AS v({', '.join(COLUMNS)})"


def _typed(row: ModelRow, name: str) -> str:
    return f"CAST({_literal(row[name])} AS {COLUMNS[name]})"


def _literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'"
