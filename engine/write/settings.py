"""Write settings: how files are encoded, and which rows meet before they are written.

Statement settings: what INSERT does with rows, as Hudi's users say it in SQL.
"""

from dataclasses import replace

from lakewarden.engine.formats.bloom import (
    DEFAULT_ENTRIES,
    DEFAULT_ENTRIES_MAX,
    DEFAULT_FALSE_POSITIVE_RATE,
    BloomOptions,
    BloomType,
)
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.formats.log.write import BLOCK_BYTES_MAX
from lakewarden.engine.kernel.settings import Setting, Settings, flag, one_of, whole_number
from lakewarden.engine.metadata.entries.row_indexes import EXPRESSION_ZONE, row_indexes
from lakewarden.engine.metadata.reading.table import COLUMN_STATS, RECORD_INDEX
from lakewarden.engine.read.query.plan_query import Query, read_spec
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.table.change_logging import captures_changes, logging_mode
from lakewarden.engine.table.config import PartitionScheme, TableConfig
from lakewarden.engine.table.keygen.key_scheme import key_column
from lakewarden.engine.table.schema import TableSchema
from lakewarden.engine.write.files.spec import FileOptions, WriteSpec
from lakewarden.engine.write.rows.evolve import MISSING_COLUMNS_KEY, with_meta_text

CODEC = Setting(
    "hoodie.parquet.compression.codec",
    "zstd",
    one_of("zstd", "snappy", "gzip", "uncompressed"),
    "How base files are compressed",
)
LEVEL: Setting[int | None] = Setting(
    "lakewarden.write.compression_level",
    None,
    whole_number,
    "The compression level; by default the fastest, which costs a few percent in size",
)
ROW_GROUP_BYTES = Setting(
    "hoodie.parquet.block.size", 120 << 20, whole_number, "Bytes of a row group before encoding"
)
DICTIONARIES = Setting(
    "hoodie.parquet.dictionary.enabled",
    True,
    flag,
    "Whether columns that repeat their values are kept as dictionaries",
)
LOG_FORMAT = Setting(
    "hoodie.logfile.data.block.format",
    "avro",
    one_of("avro", "parquet"),
    "The form of records in logs",
)
LOG_BLOCK_BYTES = Setting(
    "hoodie.logfile.data.block.max.size", BLOCK_BYTES_MAX, whole_number, "Bytes of a log's block"
)
BLOOM_TYPE = Setting(
    "hoodie.bloom.index.filter.type",
    "DYNAMIC_V0",
    one_of("DYNAMIC_V0", "SIMPLE"),
    "Whether the bloom filter of a base file grows with its keys",
)
BLOOM_ENTRIES = Setting(
    "hoodie.index.bloom.num_entries",
    DEFAULT_ENTRIES,
    whole_number,
    (
        "Keys that a bloom filter is made for; unless it is set, files of fewer keys get smaller "
        "filters"
    ),
)
BLOOM_FALSE_POSITIVES = Setting(
    "hoodie.index.bloom.fpp",
    DEFAULT_FALSE_POSITIVE_RATE,
    float,
    "How often a bloom filter may be wrong",
)
BLOOM_ENTRIES_MAX = Setting(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    DEFAULT_ENTRIES_MAX,
    whole_number,
    "Keys up to which a dynamic bloom filter grows",
)
COMBINE_UPSERT = Setting(
    "hoodie.combine.before.upsert", True, flag, "Whether an upsert merges rows of one key first"
)
COMBINE_INSERT = Setting(
    "hoodie.combine.before.insert", False, flag, "Whether an insert merges rows of one key first"
)
COMBINE_DELETE = Setting(
    "hoodie.combine.before.delete", True, flag, "Whether a key to delete counts once"
)
ALLOW_DUPLICATES = Setting(
    "hoodie.merge.allow.duplicate.on.inserts",
    True,
    flag,
    "Whether an insert adds rows whose keys the table has; otherwise it is an upsert",
)
NULL_FOR_MISSING = Setting(
    MISSING_COLUMNS_KEY,
    False,
    flag,
    "Whether columns of the table that the rows lack become null",
    aliases=("hoodie.datasource.write.reconcile.schema",),
)
EVOLVE = Setting(
    "lakewarden.write.evolve",
    False,
    flag,
    (
        "Whether a write adds columns that only the rows have, and widens columns for values "
        "that do not fit"
    ),
)
CONFLICT_RETRIES = Setting(
    "hoodie.write.num.retries.on.conflict.failures",
    0,
    whole_number,
    "How often a write starts again after a conflict with another writer",
)
BESIDE = Setting(
    "lakewarden.services.beside",
    False,
    flag,
    (
        "Whether services after a write run in a thread of the process, beside the next writes, "
        "which start again at least three times; what fails is in the result of a later one"
    ),
)
# Against the services of the same process.
_RETRIES_BESIDE = 3
MERGED_TOGETHER_BYTES = Setting(
    "lakewarden.write.merged_together_bytes",
    128 << 20,
    whole_number,
    (
        "Bytes of rows up to which several file groups are merged at once; with more, one after "
        "the other, which takes less memory"
    ),
)
STREAM_DEPTH = Setting(
    "lakewarden.stream.depth",
    0,
    whole_number,
    "How many batches of a stream may wait for their commits; 0 is the only depth there is",
)
WRITE_SETTINGS: tuple[Setting[object], ...] = (
    CODEC,
    LEVEL,
    ROW_GROUP_BYTES,
    DICTIONARIES,
    LOG_FORMAT,
    LOG_BLOCK_BYTES,
    BLOOM_TYPE,
    BLOOM_ENTRIES,
    BLOOM_FALSE_POSITIVES,
    BLOOM_ENTRIES_MAX,
    COMBINE_UPSERT,
    COMBINE_INSERT,
    COMBINE_DELETE,
    ALLOW_DUPLICATES,
    NULL_FOR_MISSING,
    EVOLVE,
    CONFLICT_RETRIES,
    MERGED_TOGETHER_BYTES,
    STREAM_DEPTH,
    EXPRESSION_ZONE,
)


def conflict_retries(settings: Settings) -> int:
    """How often a write starts again after a conflict."""
    return max(settings[CONFLICT_RETRIES], _RETRIES_BESIDE if settings[BESIDE] else 0)


_COMBINES = {
    Operation.UPSERT: COMBINE_UPSERT,
    Operation.DELETE: COMBINE_DELETE,
}


def combines(settings: Settings, operation: Operation) -> bool:
    """Whether incoming rows of one key are combined before this operation."""
    return settings[_COMBINES.get(operation, COMBINE_INSERT)]


def file_options(settings: Settings) -> FileOptions:
    """How files are encoded."""
    type_code: BloomType = "SIMPLE" if settings[BLOOM_TYPE] == "SIMPLE" else "DYNAMIC_V0"
    return FileOptions(
        codec=settings[CODEC],
        level=settings[LEVEL],
        row_group_bytes=max(settings[ROW_GROUP_BYTES], 1),
        uses_dictionaries=settings[DICTIONARIES],
        bloom=BloomOptions(
            type_code,
            settings[BLOOM_ENTRIES],
            settings[BLOOM_FALSE_POSITIVES],
            settings[BLOOM_ENTRIES_MAX],
            is_fitted=settings.resolve(BLOOM_ENTRIES).is_default,
        ),
        has_parquet_logs=settings[LOG_FORMAT] == "parquet",
        log_block_bytes=max(settings[LOG_BLOCK_BYTES], 1),
    )


def write_spec(
    state: Snapshot,
    schema: TableSchema,
    settings: Settings,
    *,
    instant: str,
    attempt: int = 0,
    logs_take_inserts: bool = False,
    threads: int = 1,
) -> WriteSpec:
    """What every task of a write has to know; `schema` is the evolved one."""
    config = state.config
    read = read_spec(state, Query(), None)
    return WriteSpec(
        instant=instant,
        attempt=attempt,
        table_type=config.table_type,
        schema=schema,
        records_text=with_meta_text(schema),
        rules=config.merge,
        files=file_options(settings),
        # Rows are rewritten as they are stored, whatever a path says of their columns.
        read=replace(
            read,
            schema=schema.with_meta(),
            columns=(),
            partitions=PartitionScheme(),
            # Columns are called in a file as they were at its instant.
            history=read.history.until(instant),
        ),
        logs_take_inserts=logs_take_inserts,
        summarised=_summarised(state),
        indexes=row_indexes(state.definitions, schema.columns, settings),
        tracks_keys=any(one.partition == RECORD_INDEX for one in state.definitions),
        key_column=_key_column(config, schema),
        captures=(logging_mode(config.properties) if captures_changes(config.properties) else None),
        threads=threads,
    )


def _key_column(config: TableConfig, schema: TableSchema) -> str | None:
    """The column that need not be read where the record key is."""
    name = key_column(config, schema.columns)
    return None if name in config.merge.ordering_fields else name


def _summarised(state: Snapshot) -> tuple[str, ...]:
    """The columns whose statistics the metadata table keeps."""
    for definition in state.definitions:
        if definition.partition == COLUMN_STATS:
            return definition.columns
    return ()


INSERT_OPERATION: Setting[str] = Setting(
    "hoodie.spark.sql.insert.into.operation",
    "",
    one_of("insert", "upsert", "bulk_insert"),
    "What INSERT INTO does; by default insert, and upsert where the table has ordering columns",
)
INSERT_MODE: Setting[str] = Setting(
    "hoodie.sql.insert.mode",
    "",
    one_of("upsert", "strict", "non-strict"),
    "The older name of that: strict refuses keys that the table has, non-strict inserts",
)
BULK_INSERT = Setting(
    "hoodie.sql.bulk.insert.enable", False, flag, "Whether INSERT INTO is a bulk insert"
)
DUPLICATES: Setting[str] = Setting(
    "hoodie.datasource.insert.dup.policy",
    "none",
    one_of("none", "drop", "fail"),
    "What an insert does with rows whose keys the table has: adds them, drops them, or fails",
)
DROP_DUPLICATES = Setting(
    "hoodie.datasource.write.insert.drop.duplicates",
    False,
    flag,
    "The older name of the policy drop",
)
OVERWRITE_MODE: Setting[str] = Setting(
    "hoodie.datasource.overwrite.mode",
    "",
    one_of("static", "dynamic"),
    (
        "Whether INSERT OVERWRITE without PARTITION replaces the table, or the partitions of its "
        "rows; by default as spark.sql.sources.partitionOverwriteMode says"
    ),
)
OVERWRITE_OPERATION: Setting[str] = Setting(
    "hoodie.bulkinsert.overwrite.operation.type",
    "",
    one_of("insert_overwrite", "insert_overwrite_table"),
    "The same in other words",
)
STATEMENT_SETTINGS: tuple[Setting[object], ...] = (
    INSERT_OPERATION,
    INSERT_MODE,
    BULK_INSERT,
    DUPLICATES,
    DROP_DUPLICATES,
    OVERWRITE_MODE,
    OVERWRITE_OPERATION,
)
