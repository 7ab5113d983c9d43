"""File names of real tables, and names that only look like them."""

import pytest

from lakewarden.engine.file_groups.file_names import BaseFile, LogFile, log_order, parse_file_name

FILE_ID = "10a73827-f64a-4c41-867e-97d601f98b5c-0"


def test_base_file_tells_group_token_and_instant() -> None:
    name = f"{FILE_ID}_1-132-269_20261118125733059.parquet"
    expected = BaseFile(name, FILE_ID, "1-132-269", "20261118125733059", "parquet", 7)
    assert parse_file_name(name, 7) == expected


def test_log_file_tells_group_instant_version_and_token() -> None:
    name = f".{FILE_ID}_20261118125738265.log.1_1-149-314"
    expected = LogFile(name, FILE_ID, "20261118125738265", 1, "1-149-314", 9)
    assert parse_file_name(name, 9) == expected


def test_log_file_of_old_releases_has_no_token() -> None:
    file = parse_file_name(f".{FILE_ID}_20200101000000.log.3", 1)
    assert isinstance(file, LogFile)
    assert (file.version, file.write_token) == (3, "")


def test_change_log_is_recognised() -> None:
    file = parse_file_name(f".{FILE_ID}_20261118125738265.log.1_1-149-314.cdc", 1)
    assert isinstance(file, LogFile)
    assert file.is_cdc


@pytest.mark.parametrize(
    "name",
    [
        ".hoodie_partition_metadata",
        f".{FILE_ID}_20261118125738265.log.1_1-149-314.crc",
        f".{FILE_ID}_1-132-269_20261118125733059.parquet.crc",
        "_SUCCESS",
        ".x.json",
        "part-00000.parquet",
        "a_b_c_20261118125733059.parquet",
        f"{FILE_ID}_1-132-269_20261118125733059.tmp",
        f"._{FILE_ID}_1-132-269_20261118125733059.parquet",
        "",
        ".",
        ".log.",
        "__.parquet",
    ],
)
def test_other_names_are_no_data_files(name: str) -> None:
    assert parse_file_name(name, 1) is None


def test_tokens_are_ordered_as_numbers() -> None:
    names = [f".{FILE_ID}_20260101000000000.log.1_{token}" for token in ("10-0-1", "9-0-1")]
    logs = [parse_file_name(name, 1) for name in names]
    ordered = sorted((log for log in logs if isinstance(log, LogFile)), key=log_order)
    assert [log.write_token for log in ordered] == ["9-0-1", "10-0-1"]
