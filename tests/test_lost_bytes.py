"""Files that have lost bytes: what a completed instant names is as recorded, or is refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden import CorruptTable, LakewardenError, Table
from lakewarden.engine.file_groups.file_names import LogFile, parse_file_name
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.formats.log.reader import read_blocks
from lakewarden.engine.metadata.encoding.records import initial_log
from lakewarden.engine.storage.memory import MemoryStorage, fresh_memory_storage
from tests.canonical import canonical_rows
from tests.golden_tables import GoldenTable

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
ROWS = [("a", 2), ("b", 1), ("c", 1)]
INDEXED: Mapping[str, object] = {
    "hoodie.index.bloom.num_entries": 50,
    "hoodie.metadata.global.record.level.index.enable": True,
    "hoodie.metadata.record.index.min.filegroup.count": 1,
    "hoodie.parquet.small.file.limit": 0,
}
WITHOUT_METADATA: Mapping[str, object] = {"hoodie.metadata.enable": False}
METADATA = ".hoodie/metadata"

Rows = list[tuple[object, ...]]


def made(kind: str, properties: Mapping[str, object], index: str | None = None) -> MemoryStorage:
    storage = fresh_memory_storage()
    table = Table.create(
        "", SCHEMA, key=["id"], type=kind, index=index, properties=properties, storage=storage
    )
    table.upsert([{"id": "a", "v": 1}])
    table.upsert([{"id": "b", "v": 1}, {"id": "c", "v": 1}])
    table.upsert([{"id": "a", "v": 2}])
    return storage


def rows_of(table: Table, **wanted: object) -> Rows:
    found = table.read_arrow(["id", "v"], **wanted)  # type: ignore[arg-type]
    return sorted(tuple(row.values()) for row in found.to_pylist())


def logs_in(storage: MemoryStorage, folder: str = "") -> list[str]:
    files = (entry.path for entry in storage.walk(folder))
    parsed = {path: parse_file_name(path.rpartition("/")[2], 0) for path in files}
    return sorted(path for path, file in parsed.items() if isinstance(file, LogFile))


def answer(ask: Callable[[], object]) -> object:
    """What a call gives, or the code of the refusal."""
    try:
        return ask()
    except LakewardenError as error:
        # Whatever is refused is refused by the name of the log.
        return error.code if ".log." in str(error) else str(error)


def upserted(table: Table) -> tuple[int, Rows]:
    done = table.upsert([{"id": "a", "v": 3}, {"id": "b", "v": 3}])
    return done.rows_inserted, rows_of(table)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_an_emptied_log_of_rows_or_of_the_metadata_table_never_hides_or_doubles_a_row(
    kind: str,
) -> None:
    sound = made(kind, INDEXED, index="RECORD_INDEX")
    logs = logs_in(sound)
    reported = set()
    for path in logs:
        storage = copy_of(sound)
        storage.put(path, b"")
        table = Table.on(storage)
        answers = (
            (answer(lambda t=table: rows_of(t)), ROWS),
            (answer(lambda t=table: rows_of(t, filter=[("v", ">", 0)])), ROWS),
            (answer(lambda t=table: t.lookup(["a", "b", "c"], ["id"]).num_rows), 3),
            (answer(lambda t=table: upserted(t)), (0, [("a", 3), ("b", 3), ("c", 1)])),
        )
        for given, right in answers:
            assert given in (right, "truncated_file"), path
        reported |= {path for given, _ in answers if given == "truncated_file"}
    # Those that a file group begins with hold nothing.
    assert reported == {path for path in logs if "_0000000000000000" not in path}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_validation_names_every_log_that_was_emptied(kind: str) -> None:
    sound = made(kind, INDEXED, index="RECORD_INDEX")
    for path in logs_in(sound):
        if "_0000000000000000" not in path:
            storage = copy_of(sound)
            storage.put(path, b"")
            assert path.rpartition("/")[2] in failures(storage), path


def copy_of(storage: MemoryStorage) -> MemoryStorage:
    copied = fresh_memory_storage()
    for entry in storage.walk(""):
        copied.put(entry.path, storage.read(entry.path))
    return copied


def failures(storage: MemoryStorage) -> str:
    results = (one.finding for one in Table.on(storage).validate())
    return " ".join(f"{one.object} {one.detail}" for one in results if one.verdict == "failed")


@dataclass(frozen=True, slots=True)
class Cut:
    """A table of which one log has lost its last block, and nothing else."""

    storage: MemoryStorage
    path: str


@pytest.fixture(params=[INDEXED, WITHOUT_METADATA], ids=["metadata table", "listing"])
def cut(request: pytest.FixtureRequest) -> Cut:
    properties = {**request.param, "hoodie.logfile.data.block.max.size": 64}
    storage = fresh_memory_storage()
    table = Table.create("", SCHEMA, key=["id"], type="mor", properties=properties, storage=storage)
    table.upsert([{"id": key, "v": 1} for key in "abc"])
    table.upsert([{"id": key, "v": 2} for key in "abc"])
    (path,) = (one for one in logs_in(storage) if not one.startswith(".hoodie"))
    content = storage.read(path)
    blocks = read_blocks(content, path)
    assert len(blocks) > 1
    storage.put(path, content[: blocks[-1].offset])
    return Cut(storage, path)


def test_a_log_that_is_cut_between_two_blocks_is_refused_by_its_name(cut: Cut) -> None:
    table = Table.on(cut.storage)
    for use_metadata in (True, False):
        with pytest.raises(CorruptTable) as caught:
            table.read_arrow(use_metadata=use_metadata)
        assert caught.value.code == "truncated_file"
        assert caught.value.path == cut.path


@pytest.mark.parametrize("service", ["compaction", "log_compaction"])
def test_no_service_folds_a_log_that_has_lost_a_block(cut: Cut, service: str) -> None:
    table = Table.on(cut.storage)
    before = cut.storage.read(cut.path)
    options = {
        "hoodie.compact.inline.max.delta.commits": 1,
        "hoodie.log.compaction.blocks.threshold": 1,
    }
    with pytest.raises(CorruptTable) as caught:
        getattr(table, service).schedule_and_run(options=options)
    assert caught.value.code == "truncated_file"
    with pytest.raises(CorruptTable):
        table.read_arrow()
    assert cut.storage.read(cut.path) == before


def test_validation_names_a_log_that_is_cut_and_a_file_that_is_gone(cut: Cut) -> None:
    name = cut.path.rpartition("/")[2]
    assert f"{name} It has " in failures(cut.storage)
    cut.storage.delete(cut.path)
    assert f"{name} It is not on storage" in failures(cut.storage)


def test_a_log_of_the_metadata_table_that_lost_a_block_is_named_and_never_folded() -> None:
    storage = made("cow", INDEXED)
    own = storage.below(METADATA)
    path = logs_in(own, "record_index")[-1]
    whole = own.read(path)
    log = parse_file_name(path.rpartition("/")[2], 0)
    assert isinstance(log, LogFile)
    _say_longer(own, log, path, len(initial_log(log.instant)))
    assert path.rpartition("/")[2] in failures(storage)
    with pytest.raises(LakewardenError) as caught:
        Table.on(storage).maintain_metadata(
            ["compaction"], options={"hoodie.metadata.compact.max.delta.commits": 1}
        )
    assert path in str(caught.value)
    own.put(path, whole + initial_log(log.instant))
    assert not failures(storage)
    Table.on(storage).maintain_metadata(
        ["compaction"], options={"hoodie.metadata.compact.max.delta.commits": 1}
    )
    assert rows_of(Table.on(storage)) == ROWS


def _say_longer(own: MemoryStorage, log: LogFile, path: str, more_bytes: int) -> None:
    """Have the deltacommit that made a log record some more bytes."""
    (completed,) = (
        entry.path
        for entry in own.list(".hoodie/timeline").files
        if entry.name.startswith(f"{log.instant}_")
    )
    metadata = commit.decode(own.read(completed), completed)
    stats = {
        partition: tuple(
            replace(one, file_size_in_bytes=one.file_size_in_bytes + more_bytes)
            if one.path == path
            else one
            for one in some
        )
        for partition, some in metadata.partition_to_write_stats.items()
    }
    own.put(completed, commit.encode(replace(metadata, partition_to_write_stats=stats)))


def test_a_log_that_a_dying_writer_of_version_6_has_torn_is_passed_over(
    golden_copy: GoldenTable,
) -> None:
    table, last = _of_version_6(golden_copy)
    rows = canonical_rows(Table(str(table)).read_arrow())
    number = last.name.partition(".log.")[2].partition("_")[0]
    torn = last.with_name(last.name.replace(f".log.{number}_", f".log.{int(number) + 1}_"))
    for content in (last.read_bytes()[:-100], b"", b"#HUDI#", bytes(200)):
        torn.write_bytes(content)
        assert canonical_rows(Table(str(table)).read_arrow()) == rows


def test_what_a_dying_writer_has_appended_is_passed_over_and_what_follows_it_read(
    golden_copy: GoldenTable,
) -> None:
    table, last = _of_version_6(golden_copy)
    rows = canonical_rows(Table(str(table)).read_arrow())
    whole = last.read_bytes()
    torn = whole[:-100]
    for behind in (torn, torn + initial_log("99991231235959999")):
        last.write_bytes(whole + behind)
        assert canonical_rows(Table(str(table)).read_arrow()) == rows


def test_bytes_of_a_completed_deltacommit_of_version_6_are_never_passed_over(
    golden_copy: GoldenTable,
) -> None:
    table, last = _of_version_6(golden_copy)
    whole = last.read_bytes()
    for damaged in (whole[:-100], whole[:-100] + whole, b"", whole[:300] + bytes(len(whole) - 300)):
        last.write_bytes(damaged)
        with pytest.raises(CorruptTable) as caught:
            Table(str(table)).read_arrow()
        assert last.name in str(caught.value)


def _of_version_6(golden_copy: GoldenTable) -> tuple[Path, Path]:
    """A table of version 6, and the last log of its metadata table's list of files."""
    table = golden_copy("v6_mor")
    logs = (table / METADATA / "files").glob(".files-0000*.log.*_*[0-9]")
    return table, max(logs, key=lambda log: int(log.name.partition(".log.")[2].partition("_")[0]))
