"""The border of a table: what real tables name passes, and no way out does."""

import pytest

from lakewarden.engine.kernel.errors import CorruptTable
from lakewarden.engine.storage import paths

INSTANT = "20260101000000000"
INSIDE = (
    "p",
    "2026/01/02",
    "city=Oslo/day=2026-01-02",
    "city=S%C3%A3o Paulo",
    "a%2Fb%2E%2E",
    "..%2Fx",
    "__HIVE_DEFAULT_PARTITION__",
    "Grünerløkka",
    ".hidden",
    "a..b",
    "a\\b",
    "x" * 255,
)
WAYS_OUT = (
    "..",
    ".",
    "../p",
    "p/..",
    "p/../../q",
    "/p",
    "p/",
    "p//q",
    ".hoodie",
    ".Hoodie/timeline",
    "p/.hoodie/x",
    "p\0",
    "p\nq",
    "p\x7f",
    "..\\p",
    "p\\..\\q",
    "%2e%2e/p",
    "%2E./p",
    "%2e%2e%2fp",
    "\ud800",
    "x" * 1025,
    "p/" * 2049 + "p",
)
DATA_FILES = (
    f"f-0_0-0-1_{INSTANT}.parquet",
    f"files-0000-0_0-0-1_{INSTANT}.hfile",
    f".f-0_{INSTANT}.log.1_0-0-1",
    f".f-0_{INSTANT}.log.12_0-0-1.cdc",
    f".f-0_{INSTANT}.log.1",
    f"a b%3A0_0-0-1_{INSTANT}.parquet",
)
NO_DATA_FILES = (
    "",
    "precious.txt",
    "hoodie.properties",
    ".hoodie_partition_metadata",
    "../f-0_0-0-1_1.parquet",
    "a\\f-0_0-0-1_1.parquet",
    ".parquet",
    "f\n_0_1.parquet",
    "f" * 1100 + "_0_1.parquet",
)


@pytest.mark.parametrize("path", INSIDE)
def test_what_tables_call_their_partitions_passes(path: str) -> None:
    paths.check_path(path, "a plan")
    paths.check_partition(path, "a plan")
    paths.check_partition("", "a plan")


@pytest.mark.parametrize("path", WAYS_OUT)
def test_a_way_out_is_refused_with_the_file_that_names_it(path: str) -> None:
    for check in (paths.check_path, paths.check_partition, paths.check_name):
        with pytest.raises(CorruptTable, match=r"^a plan names ") as caught:
            check(path, "a plan")
        assert caught.value.code == "path_outside_table"
        assert caught.value.path == "a plan"
        assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", DATA_FILES)
def test_the_names_of_data_files_pass_alone_and_in_full(name: str) -> None:
    paths.check_data_file(name, "a plan")
    paths.check_address(name, "p=a", "a plan")
    for table in ("", "/tables/t/", "file:/tables/t/", "s3a://bucket/t/", "hdfs://host:1/t/"):
        paths.check_address(f"{table}p=a/{name}", "p=a", "a plan")
        paths.check_address(f"{table}{name}", "", "a plan")


@pytest.mark.parametrize("name", NO_DATA_FILES)
def test_what_is_no_data_file_is_refused(name: str) -> None:
    with pytest.raises(CorruptTable):
        paths.check_data_file(name, "a plan")


@pytest.mark.parametrize("folder", ["/elsewhere/", "../", "/t/q/", "/t/../p/", "x" * 5000 + "/p/"])
def test_an_address_in_another_partition_is_refused(folder: str) -> None:
    with pytest.raises(CorruptTable):
        paths.check_address(folder + DATA_FILES[0], "p", "a plan")


@pytest.mark.parametrize("time", ["", "..", "x", "2026/", "20260101000000000 ", "1" * 50])
def test_what_is_no_time_of_an_instant_is_refused(time: str) -> None:
    paths.check_instant(INSTANT, "a plan")
    with pytest.raises(CorruptTable):
        paths.check_instant(time, "a plan")


@pytest.mark.parametrize("name", [".hoodie", "..", "files/x", "", ".", "files\n"])
def test_what_is_no_partition_of_the_metadata_table_is_refused(name: str) -> None:
    paths.check_metadata_partition("expr_index_a-b", "the properties")
    with pytest.raises(CorruptTable):
        paths.check_metadata_partition(name, "the properties")


@pytest.mark.parametrize("folder", ["metadata", ".lakewarden/ledger", "../x", ".temp", ".hoodie"])
def test_a_timeline_in_folders_of_other_files_is_refused(folder: str) -> None:
    paths.check_timeline_folder("timeline", "the properties")
    with pytest.raises(CorruptTable):
        paths.check_timeline_folder(folder, "the properties")


@pytest.mark.parametrize(
    "path", [".hoodie/hoodie.properties", ".hoodie/.index_defs/../x", "x.json", "/x", ""]
)
def test_definitions_of_indexes_lie_in_their_own_folder(path: str) -> None:
    paths.check_definitions_path(".hoodie/.index_defs/index.json", "the properties")
    with pytest.raises(CorruptTable):
        paths.check_definitions_path(path, "the properties")
