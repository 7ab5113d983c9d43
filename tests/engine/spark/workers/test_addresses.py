"""Where Spark finds the files of a storage."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.spark.workers.addresses import check_reachable, spark_address
from lakewarden.engine.storage.port import Location


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("/lake/p=50%25/a b.parquet", "file:///lake/p=50%25/a b.parquet"),
        ("file:/lake/p=10:30/f", "file:///lake/p=10:30/f"),
        ("file:///lake/[x]/f", "file:///lake/[x]/f"),
        ("file://localhost/lake/f", "file:///lake/f"),
        ("s3://lake/orders/f", "s3a://lake/orders/f"),
        ("s3a://lake/f", "s3a://lake/f"),
        ("S3N://lake/f", "s3a://lake/f"),
        ("gs://lake/f", "gs://lake/f"),
        ("abfss://container@account.host/f", "abfss://container@account.host/f"),
        ("sftp://host/f", None),
        ("memory://lake/f", None),
    ],
)
def test_address_for_spark(uri: str, expected: str | None) -> None:
    assert spark_address(uri) == expected


def test_a_table_in_memory_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_reachable(Location("memory://lake"))
    assert refused.value.code == "unsupported_spark_storage"
