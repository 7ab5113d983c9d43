"""Write settings, by Hudi's names."""

import pickle

import pytest

from lakewarden.engine.formats.bloom import BloomOptions
from lakewarden.engine.formats.instant_metadata.commit import Operation
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.write.files.spec import FileOptions
from lakewarden.engine.write.settings import combines, file_options
from tests.engine.write.small_table import write_spec_of


def test_without_settings_files_are_ours() -> None:
    assert file_options(Settings()) == FileOptions(bloom=BloomOptions(is_fitted=True))
    assert FileOptions().compression_level == 1


@pytest.mark.parametrize(
    ("codec", "level", "used"),
    [
        ("gzip", None, 1),
        ("gzip", 6, 6),
        ("ZSTD", None, 1),
        ("snappy", None, None),
        ("snappy", 3, None),
    ],
)
def test_levels_go_with_codecs_that_have_them(
    codec: str, level: int | None, used: int | None
) -> None:
    given: dict[str, object] = {"hoodie.parquet.compression.codec": codec}
    if level is not None:
        given["lakewarden.write.compression_level"] = level
    assert file_options(Settings.of(arguments=given)).compression_level == used


def test_filters_and_logs() -> None:
    options = file_options(
        Settings.of(
            table={
                "hoodie.bloom.index.filter.type": "simple",
                "hoodie.index.bloom.num_entries": "7",
                "hoodie.index.bloom.fpp": "0.01",
                "hoodie.bloom.index.filter.dynamic.max.entries": "9",
                "hoodie.logfile.data.block.format": "parquet",
            }
        )
    )
    assert options.bloom == BloomOptions("SIMPLE", 7, 0.01, 9)
    assert options.has_parquet_logs


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="zstd, snappy, gzip"):
        file_options(Settings.of(arguments={"hoodie.parquet.compression.codec": "lzo"}))


def test_upserts_and_deletes_combine_their_rows_and_inserts_do_not() -> None:
    assert combines(Settings(), Operation.UPSERT)
    assert combines(Settings(), Operation.DELETE)
    assert not combines(Settings(), Operation.BULK_INSERT)
    combining = Settings.of(arguments={"hoodie.combine.before.insert": True})
    assert combines(combining, Operation.INSERT)


def test_what_tasks_are_told_travels() -> None:
    spec = write_spec_of()
    assert pickle.loads(pickle.dumps(spec)) == spec
