"""The writer of the data source: workers hand over their rows, and one process writes them.

Spark starts the tasks of a data source without asking anybody for a plan, so that they can't know
which file group a row belongs to. Their rows come together in the process that commits, as those of
a small frame do; larger ones are refused with the call that writes them in workers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakewarden.engine.index.options import BUCKET_COUNT, BUCKET_ENGINE, BUCKET_FIELDS, INDEX_TYPE
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.spark.workers.addresses import check_reachable
from lakewarden.engine.spark.workers.reports import packed_table, unpacked_table
from lakewarden.engine.storage.port import Location
from lakewarden.engine.table.config import TableConfig
from lakewarden.engine.table.creation import is_creation_property
from lakewarden.engine.write.settings import EVOLVE
from lakewarden.table import Table

TASK_BYTES_MAX = 128 << 20
OPERATION = "hoodie.datasource.write.operation"
OPERATIONS = ("upsert", "insert", "bulk_insert", "delete")
# What describes a table that is created, by the names under which Hudi knows it.
KEY = ("hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields")
PARTITION = ("hoodie.datasource.write.partitionpath.field", "hoodie.table.partition.fields")
ORDERING = (
    "hoodie.table.ordering.fields",
    "hoodie.datasource.write.precombine.field",
    "hoodie.table.precombine.field",
)
TYPE = ("hoodie.datasource.write.table.type", "hoodie.table.type")
MERGE_MODE = ("hoodie.write.record.merge.mode", "hoodie.record.merge.mode")
_IDENTIFYING = frozenset((INDEX_TYPE.key, BUCKET_ENGINE.key, BUCKET_COUNT.key, BUCKET_FIELDS.key))
_DESCRIBING = frozenset((*KEY, *PARTITION, *ORDERING, *TYPE, *MERGE_MODE, OPERATION))


@dataclass
class HandedOver(WriterCommitMessage):
    """The rows of one task."""

    packed: bytes


class FrameWriter(DataSourceArrowWriter):
    """Appends by upsert, or puts rows in the place of all that the table has."""

    def __init__(
        self,
        location: Location,
        options: Mapping[str, str],
        schema: StructType,
        *,
        overwrites: bool,
    ) -> None:
        check_reachable(location)
        self._location = location
        self._options = dict(options)
        self._schema = arrow_columns(schema)
        self._overwrites = overwrites
        self._operation = _operation(self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> HandedOver:
        batches, size_bytes = [], 0
        for batch in iterator:
            size_bytes += batch.nbytes
            if size_bytes > TASK_BYTES_MAX:
                raise _too_large()
            batches.append(batch)
        rows = pa.Table.from_batches(batches) if batches else self._schema.empty_table()
        return HandedOver(packed_table(rows))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        packed = [one.packed for one in messages if isinstance(one, HandedOver)]
        tables = [table for table in map(unpacked_table, packed) if len(table)]
        rows = pa.concat_tables(tables) if tables else self._schema.empty_table()
        table = self._table(rows.schema)
        own = {
            key: value
            for key, value in self._options.items()
            if key not in _DESCRIBING and not is_creation_property(key)
        }
        # A frame changes the columns of a table, as it does with Hudi.
        options = {EVOLVE.key: "true", **own}
        if self._overwrites:
            table.overwrite(rows, options)
        else:
            getattr(table, self._operation)(rows, options=options)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing was started, so that there is nothing to undo."""

    def _table(self, schema: pa.Schema) -> Table:
        """The table, which is created if there is none."""
        options = self._options
        try:
            table = Table(self._location.uri, self._location.options)
        except InvalidRequest as error:
            if error.code != "no_table":
                raise
        else:
            _refuse_other(table.config, options)
            return table
        return Table.create(
            self._location.uri,
            schema,
            key=_names(options, KEY) or _missing_key(),
            partition=_names(options, PARTITION),
            ordering=_names(options, ORDERING),
            type=_first(options, TYPE) or "cow",
            merge_mode=_first(options, MERGE_MODE) or None,
            properties={key: value for key, value in options.items() if _is_kept(key)},
            storage_options=self._location.options,
        )


def arrow_columns(schema: StructType) -> pa.Schema:
    """The columns of a Spark schema, with times in UTC: newer releases have to set that."""
    convert: Callable[..., pa.Schema] = to_arrow_schema
    asks = "timezone" in signature(convert).parameters
    return convert(schema, timezone="UTC") if asks else convert(schema)


def _operation(options: Mapping[str, str]) -> str:
    operation = options.get(OPERATION, OPERATIONS[0])
    if operation not in OPERATIONS:
        raise InvalidRequest(
            "unsupported_operation",
            what=f"The data source has no operation {operation!r}.",
            why=f"It has {', '.join(OPERATIONS)}, and overwrites with mode('overwrite').",
            now="For others use the methods of lakewarden.Table.",
            operation=operation,
        )
    return operation


def _first(options: Mapping[str, str], names: Sequence[str]) -> str:
    return next((options[name] for name in names if name in options), "")


def _is_kept(key: str) -> bool:
    """Whether an option says what a new table is, for all of its writers."""
    return is_creation_property(key) or key in _IDENTIFYING


def _refuse_other(config: TableConfig, options: Mapping[str, str]) -> None:
    """Options that describe a table describe the one there is: else its rows would be others."""
    partitions = [field.name for field in config.partitions.fields]
    for keys, present in ((KEY, list(config.key_fields)), (PARTITION, partitions)):
        asked = [name.partition(":")[0] for name in _names(options, keys)]
        if asked and asked != present:
            raise InvalidRequest(
                "other_identity",
                what=f"The options set {keys[0]} to {','.join(asked)}.",
                why=(
                    f"The table has {','.join(present) or 'none'}, which decide the rows "
                    "that are one row."
                ),
                now="Leave the option out, or write into a new table.",
                setting=keys[0],
            )


def _names(options: Mapping[str, str], names: Sequence[str]) -> list[str]:
    return [name.strip() for name in _first(options, names).split(",") if name.strip()]


def _missing_key() -> list[str]:
    raise InvalidRequest(
        "missing_key",
        what="No table is there, and the call cannot create one.",
        why="No option names the key columns.",
        now=f"Set {KEY[0]}, and if the table has them {PARTITION[0]} and {ORDERING[0]}.",
    )


def _too_large() -> InvalidRequest:
    return InvalidRequest(
        "too_large_for_data_source",
        what=f"A Spark task has more than {TASK_BYTES_MAX >> 20} MB of rows.",
        why="A Python data source writes all rows from one process.",
        now="Use lakewarden.Table(path).upsert(frame), which writes on all workers.",
    )
