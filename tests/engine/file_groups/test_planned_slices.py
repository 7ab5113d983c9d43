"""Slices as plans name them: by bare names, and by whatever Java has written before."""

from dataclasses import replace

from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.file_groups.planned_slices import operation_of, slice_of
from lakewarden.engine.file_groups.slices import FileSlice
from lakewarden.engine.storage.memory import fresh_memory_storage

BASE = parse_file_name("f-0_0-0-1_20260101000000000.parquet", 5 << 20)
LOGS = tuple(parse_file_name(f".f-0_2026010{day}000000000.log.1_0-0-1", 3 << 19) for day in (2, 3))
SLICE = FileSlice("p=a", "f-0", "20260101000000000", BASE, LOGS)  # type: ignore[arg-type]


def test_figures_are_those_that_java_gives() -> None:
    assert dict(operation_of(SLICE).metrics) == {
        "TOTAL_LOG_FILES": 2.0,
        "TOTAL_LOG_FILES_SIZE": float(3 << 20),
        "TOTAL_IO_READ_MB": 8.0,
        "TOTAL_IO_WRITE_MB": 5.0,
        "TOTAL_IO_MB": 13.0,
    }


def test_a_slice_without_base_file_is_reckoned_as_one_of_usual_size() -> None:
    operation = operation_of(replace(SLICE, base_file=None))
    assert operation.data_file_path is None
    assert operation.metrics["TOTAL_IO_WRITE_MB"] == 120.0


def test_a_plan_leads_back_to_the_slice() -> None:
    storage = fresh_memory_storage()
    for file in (BASE, *LOGS):
        assert file is not None
        storage.put(SLICE.path(file), bytes(file.size_bytes))
    assert slice_of(storage, operation_of(SLICE)) == SLICE


def test_full_addresses_of_older_plans_are_read_by_their_names() -> None:
    operation = operation_of(SLICE)
    older = replace(
        operation,
        data_file_path=f"file:/table/p=a/{operation.data_file_path}",
        delta_file_paths=tuple(f"/table/p=a/{name}" for name in operation.delta_file_paths),
    )
    found = slice_of(fresh_memory_storage(), older)
    assert found.base_file is not None
    assert [file.name for file in (found.base_file, *found.log_files)] == [
        operation.data_file_path,
        *operation.delta_file_paths,
    ]
    assert found.size_bytes == 0
