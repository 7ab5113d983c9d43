"""How large a row comes out is asked of earlier writes, of settings, and of the rows."""

import pytest

from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, WriteStat
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.table.config import TableType
from lakewarden.engine.write.routing.sizes import (
    INSERT_SPLIT,
    RECORD_SIZE,
    record_bytes,
    size_limits,
)
from tests.engine.index.small_tables import SmallTable, keyed_rows

MEGABYTE = 1 << 20
ROWS = keyed_rows([("a", f"{n:032d}") for n in range(100)])


def base_file(size_bytes: int, row_count: int) -> WriteStat:
    return WriteStat(path="a/f.parquet", file_size_in_bytes=size_bytes, num_writes=row_count)


def estimate(table: SmallTable, **options: str) -> int:
    settings = Settings.of(
        arguments={key.replace("__", "."): text for key, text in options.items()}
    )
    return record_bytes(table.state().timeline.active, settings, ROWS)


def table_with(*commits: WriteStat, action: str = "deltacommit") -> SmallTable:
    """A table on whose timeline each of the files has a commit of its own."""
    table = SmallTable()
    for number, stat in enumerate(commits):
        requested = 20260101000000000 + 10 * number
        metadata = CommitMetadata(partition_to_write_stats={"a": (stat,)})
        path = f".hoodie/timeline/{requested}_{requested + 1}.{action}"
        table.storage.put(path, commit.encode(metadata))
    return table


def test_earlier_writes_tell_first() -> None:
    table = table_with(base_file(10 * MEGABYTE, MEGABYTE), base_file(30 * MEGABYTE, MEGABYTE))
    assert estimate(table, hoodie__copyonwrite__record__size__estimate="7") == 20


def test_only_the_newest_writes_are_asked() -> None:
    older = [base_file(90 * MEGABYTE, MEGABYTE)] * 3
    assert estimate(table_with(*older, *[base_file(5 * MEGABYTE, MEGABYTE)] * 5)) == 5


def test_files_that_are_mostly_footer_tell_nothing() -> None:
    table = table_with(base_file(MEGABYTE, 10))
    assert estimate(table, hoodie__copyonwrite__record__size__estimate="7") == 7


def test_log_files_tell_nothing() -> None:
    log = WriteStat(
        path="a/.f_1.log.1_0-0-0",
        file_size_in_bytes=10 * MEGABYTE,
        num_writes=10,
        log_files=(".f_1.log.1_0-0-0",),
    )
    assert estimate(table_with(log), hoodie__copyonwrite__record__size__estimate="7") == 7


def test_without_anything_the_rows_themselves_are_measured() -> None:
    assert 32 < estimate(SmallTable()) < 128


@pytest.mark.parametrize(
    ("table_type", "ratio"), [(TableType.COPY_ON_WRITE, None), (TableType.MERGE_ON_READ, 4.0)]
)
def test_only_merge_on_read_tables_weigh_a_rewrite(
    table_type: TableType, ratio: float | None
) -> None:
    limits = size_limits(Settings.of(), table_type, 100)
    assert limits.rewrite_ratio == ratio
    assert limits.rows_per_file == (120 << 20) // 100


def test_a_row_count_counts_where_sizes_shall_not() -> None:
    settings = Settings.of(
        arguments={
            "hoodie.copyonwrite.insert.auto.split": False,
            "hoodie.copyonwrite.insert.split.size": 17,
        }
    )
    assert size_limits(settings, TableType.COPY_ON_WRITE, 100).rows_per_file == 17


@pytest.mark.parametrize("key", ["hoodie.parquet.max.file.size", INSERT_SPLIT.key, RECORD_SIZE.key])
def test_sizes_that_would_make_endless_files_are_refused(key: str) -> None:
    settings = Settings.of(
        arguments={key: "0", "hoodie.copyonwrite.insert.auto.split": key != INSERT_SPLIT.key}
    )
    with pytest.raises(InvalidRequest, match=key):
        size_limits(settings, TableType.COPY_ON_WRITE, settings[RECORD_SIZE])
