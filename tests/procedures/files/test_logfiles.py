"""Log files block by block and record by record, whatever state they are in."""

import json
from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest
from tests.golden_tables import GoldenTable
from tests.procedures.calls import call

LOGS = "*/.*.log.*"
DELETES = "mor_deletes"


def test_every_block_has_a_row(golden: GoldenTable) -> None:
    path = golden(DELETES)
    rows = call("show_logfile_metadata", path=str(path), log_file_path_pattern=LOGS, limit=1000)
    assert {row["block_type"] for row in rows} >= {"AVRO_DATA_BLOCK", "DELETE_BLOCK"}
    assert all(row["record_count"] for row in rows)
    sizes = {
        file.name: file.stat().st_size for file in path.rglob(".*.log.*") if file.parent != path
    }
    counted: dict[str, int] = {}
    for row in rows:
        name = Path(row["log_file"]).name
        counted[name] = counted.get(name, 0) + row["block_size_bytes"]
        assert json.loads(row["header_metadata"])["INSTANT_TIME"] == row["instant_time"]
    assert counted == {name: size for name, size in sizes.items() if name in counted}


def test_one_file_is_named_by_its_path_or_its_address(path: str) -> None:
    row = call("show_fsview_latest", path=path)[0]
    name = row["delta_files_compaction_unscheduled"][1:-1]
    relative = f"{row['partition']}/{name}"
    by_path = call("show_logfile_metadata", path=path, log_file_path_pattern=relative)
    by_address = call(
        "show_logfile_metadata", path=path, log_file_path_pattern=f"{path}/{relative}"
    )
    assert by_path == by_address != []
    assert {one["log_file"] for one in by_path} == {relative}


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "s3://other/*", "p=a/../../x"])
def test_a_pattern_stays_in_the_table(pattern: str, path: str) -> None:
    with pytest.raises(InvalidRequest, match="is not in the table"):
        call("show_logfile_metadata", path=path, log_file_path_pattern=pattern)


def test_records_are_shown_as_they_stand_or_merged(path: str) -> None:
    call_of_logs = {"path": path, "log_file_path_pattern": LOGS, "limit": 100}
    rows = [json.loads(row["records"]) for row in call("show_logfile_records", **call_of_logs)]
    assert sorted(row["id"] for row in rows) == [f"k{number}" for number in range(6)]
    assert {row["ts"] for row in rows} == {2}
    merged = call("show_logfile_records", **call_of_logs, merge=True)
    assert sorted(json.loads(row["records"])["id"] for row in merged) == sorted(
        row["id"] for row in rows
    )


def test_merged_records_are_each_key_once(golden: GoldenTable) -> None:
    path = str(golden("mor_archived_lsm_levels"))
    named = {"path": path, "log_file_path_pattern": LOGS, "limit": 1000}
    every = [json.loads(row["records"])["id"] for row in call("show_logfile_records", **named)]
    once = [
        json.loads(row["records"])["id"]
        for row in call("show_logfile_records", **named, merge=True)
    ]
    assert len(once) == len(set(once))
    assert set(once) <= set(every)


def test_a_corrupt_block_is_a_row_among_blocks_and_an_error_among_records(
    golden_copy: GoldenTable,
) -> None:
    path = golden_copy("mor_compaction_requested")
    log = min(file for file in path.rglob(".*.log.*") if ".hoodie" not in file.parts)
    log.write_bytes(log.read_bytes() + b"#HUDI#torn")
    named = {"path": str(path), "log_file_path_pattern": f"*/{log.name}"}
    *_, last = call("show_logfile_metadata", **named)
    assert (last["block_type"], last["record_count"]) == ("CORRUPT_BLOCK", 0)
    assert json.loads(last["header_metadata"])["reason"]
    with pytest.raises(CorruptTable, match=log.name.replace(".", r"\.")):
        call("show_logfile_records", **named)
