"""Statement settings: what INSERT does with rows, as Hudi's users say it in SQL."""

from lakewarden.engine.kernel.settings import Setting, flag, one_of

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
