"""Credentials of S3 are understood by the names of s3fs, AWS and Hadoop."""

import pytest

from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.storage.s3 import s3fs_options
from tests.engine.storage.conftest import ACCESS_KEY, SECRET_KEY, S3Server


def test_an_own_name_wins_over_aws_and_that_over_hadoop() -> None:
    said = {"fs.s3a.access.key": "h", "fs.s3a.secret.key": "h", "fs.s3a.session.token": "h"}
    aws = {"aws_access_key_id": "a", "aws_secret_access_key": "a"}
    assert s3fs_options({**said, **aws, "key": "own"}, "lake") == {
        "key": "own",
        "secret": "a",
        "token": "h",
    }


def test_a_bucket_may_have_settings_of_its_own() -> None:
    said = {
        "fs.s3a.endpoint": "everywhere",
        "fs.s3a.bucket.lake.endpoint": "here:9000",
        "fs.s3a.bucket.lake.connection.ssl.enabled": "false",
        "fs.s3a.bucket.lake.path.style.access": "true",
        "fs.s3a.bucket.pond.access.key": "other",
        "fs.s3a.connection.maximum": "96",
    }
    assert s3fs_options(said, "lake") == {
        "endpoint_url": "http://here:9000",
        "config_kwargs": {"s3": {"addressing_style": "path"}},
    }
    assert s3fs_options(said, "pool") == {"endpoint_url": "https://everywhere"}


def test_what_a_caller_nests_is_kept_beside_a_region() -> None:
    given = {"client_kwargs": {"endpoint_url": "u"}, "fs.s3a.endpoint.region": "eu-north-1"}
    expected = {"client_kwargs": {"region_name": "eu-north-1", "endpoint_url": "u"}}
    assert s3fs_options(given, "lake") == expected


def test_public_buckets_need_no_credentials() -> None:
    provider = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    assert s3fs_options({"fs.s3a.aws.credentials.provider": provider}, "lake") == {"anon": True}


@pytest.mark.parametrize(
    ("key", "secret", "endpoint"),
    [
        ("key", "secret", "endpoint_url"),
        ("aws_access_key_id", "aws_secret_access_key", "aws_endpoint_url"),
        ("fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.endpoint"),
    ],
)
def test_a_table_is_reached_by_each_spelling(
    s3_server: S3Server, key: str, secret: str, endpoint: str
) -> None:
    location = s3_server.fresh_bucket()
    open_storage(location).put("file", b"there")
    options = {key: ACCESS_KEY, secret: SECRET_KEY, endpoint: f"http://127.0.0.1:{s3_server.port}"}
    assert open_storage(Location(location.uri, options)).read("file") == b"there"


def test_a_table_is_reached_by_the_environment(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = s3_server.fresh_bucket()
    open_storage(location).put("file", b"there")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{s3_server.port}")
    assert open_storage(Location(location.uri, {})).read("file") == b"there"


def test_other_stores_are_not_given_the_options_of_s3() -> None:
    open_storage(Location("memory://other/table", {"fs.s3a.access.key": "A"}))
