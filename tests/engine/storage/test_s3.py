"""S3 through s3fs: the contract against a real server process, vanished places, and secrets."""

import pickle
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable

import pytest
import s3fs

from lakewarden.engine.kernel.errors import InvalidRequest, Unavailable
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Storage, Unknown
from tests.engine.storage.conftest import ACCESS_KEY, SECRET_KEY, S3Server, s3_options
from tests.engine.storage.contract import ProcessContract, ReplaceContract, StorageContract


@pytest.fixture
def storage(s3_location: Location) -> Storage:
    return open_storage(s3_location)


# The server answers one request after the other, so that the races take long on a busy machine.
@pytest.mark.timeout(900)
class TestS3Storage(StorageContract, ReplaceContract, ProcessContract):
    thread_races = 200
    process_races = 60
    replace_races = 60


def test_touching_is_refused(storage: Storage) -> None:
    with pytest.raises(InvalidRequest) as caught:
        storage.touch("file")
    assert caught.value.code == "unsupported_touch"


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_every_spelling_finds_the_bucket(s3_location: Location, scheme: str) -> None:
    uri = s3_location.uri.replace("s3:", f"{scheme}:")
    storage = open_storage(Location(uri, s3_location.options))
    storage.put("file", b"1")
    assert open_storage(s3_location).read("file") == b"1"
    assert storage.uri("file") == f"{uri}/file"


def test_markers_of_folders_are_no_files(s3_location: Location) -> None:
    storage = open_storage(s3_location)
    storage.put("folder/file", b"1")
    filesystem = s3fs.S3FileSystem(**s3_location.options)
    bucket = s3_location.uri.split("/")[2]
    for key in ("table/folder/", "table/", "table/empty/"):
        filesystem.call_s3("put_object", Bucket=bucket, Key=key, Body=b"")
    assert [entry.path for entry in storage.walk("")] == ["folder/file"]
    assert [entry.path for entry in storage.list("folder").files] == ["folder/file"]
    assert storage.delete_folder("folder") == 1
    assert storage.list("").folders == ("empty",)


def test_what_another_client_wrote_shows_at_once(s3_location: Location) -> None:
    storage = open_storage(s3_location)
    storage.put("folder/one", b"1")
    assert len(storage.list("folder").files) == len(storage.walk("")) == 1
    other = s3fs.S3FileSystem(**s3_location.options, skip_instance_cache=True)
    other.pipe_file(f"{s3_location.uri}/folder/two", b"22")
    assert len(storage.list("folder").files) == len(storage.walk("")) == 2
    other.rm_file(f"{s3_location.uri}/folder/one")
    assert storage.stat("folder/one") is None
    assert [entry.name for entry in storage.list("folder").files] == ["two"]


def test_a_large_stream_arrives(storage: Storage) -> None:
    piece = bytes(range(256)) * 4096
    with storage.create("large") as stream:
        for _ in range(24):
            stream.write(piece)
    entry = storage.stat("large")
    assert entry is not None
    assert entry.size_bytes == 24 * len(piece)
    with storage.open("large") as file:
        assert file.read_at(len(piece), 23 * len(piece)) == piece


def test_a_whole_file_is_read_by_one_request(s3_location: Location) -> None:
    storage = open_storage(s3_location)
    storage.put("file", b"content")
    requests = []
    # The file system that the storage has, since fsspec keeps one for the same options.
    filesystem = s3fs.S3FileSystem(**s3_location.options, use_listings_cache=False)
    filesystem.s3.meta.events.register(
        "before-send.s3", lambda request, **_: requests.append(request.method)
    )
    assert storage.read("file") == b"content"
    assert requests == ["GET"]


def test_a_vanished_bucket_is_not_an_empty_table(s3_server: S3Server) -> None:
    storage = open_storage(Location("s3://no-such-bucket/table", s3_server.options))
    for call in (storage.list, storage.walk, storage.stat, storage.read, storage.open):
        with pytest.raises(Unavailable, match="NoSuchBucket") as caught:
            call("file")
        assert caught.value.path == "s3://no-such-bucket/table/file"
    with pytest.raises(Unavailable, match="NoSuchBucket"):
        storage.put("file", b"1")
    answer = storage.create_exclusive("file", b"1")
    assert isinstance(answer, Unknown)
    assert "NoSuchBucket" in answer.cause


def unreachable() -> Storage:
    """A service that answers no more: its port was free a moment ago."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    return open_storage(Location("s3://bucket/table", s3_options(port)))


def stream_to(storage: Storage) -> None:
    with storage.create("file") as stream:
        stream.write(b"1")


@pytest.mark.parametrize(
    "call",
    [
        lambda storage: storage.read("file"),
        lambda storage: storage.list(""),
        lambda storage: storage.walk(""),
        lambda storage: storage.open("file"),
        lambda storage: storage.put("file", b"1"),
        stream_to,
    ],
    ids=["read", "list", "walk", "open", "put", "create"],
)
def test_an_unreachable_service_is_told_without_secrets(call: Callable[[Storage], object]) -> None:
    storage = unreachable()
    with pytest.raises(Unavailable) as caught:
        call(storage)
    error = caught.value
    assert error.code == "storage_unavailable"
    assert "s3://bucket/table" in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = [str(error), repr(error), *traceback.format_exception(error), str(error.parameters)]
    assert_no_secrets(*shown, pickle.dumps(error).decode("latin-1"))


def test_a_create_without_any_answer_is_unknown() -> None:
    answer = unreachable().create_exclusive("file", b"mine")
    assert isinstance(answer, Unknown)
    assert "Reading back failed" in answer.cause
    assert_no_secrets(repr(answer))


def test_storage_and_location_show_no_secrets(s3_location: Location) -> None:
    storage = open_storage(s3_location)
    shown = (storage, storage.below("folder"), storage.location, [storage], {"a": storage.location})
    assert_no_secrets(*(f"{one!r} {one!s}" for one in shown))
    assert SECRET_KEY in pickle.dumps(storage.location).decode("latin-1")


def test_wrong_options_are_told_without_secrets() -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_storage(Location("s3://bucket/table", {"key": ACCESS_KEY, "username": SECRET_KEY}))
    assert caught.value.code == "invalid_location"
    assert caught.value.__context__ is None
    assert_no_secrets(str(caught.value))


def test_an_address_with_a_password_is_refused_without_telling_it() -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_storage(Location(f"s3://{ACCESS_KEY}:{SECRET_KEY}@bucket/table"))
    assert caught.value.code == "credentials_in_address"
    assert_no_secrets(str(caught.value), str(caught.value.parameters))


def assert_no_secrets(*texts: str) -> None:
    for text in texts:
        assert SECRET_KEY not in text
        assert ACCESS_KEY not in text


def test_a_missing_package_is_named() -> None:
    code = """
import sys
sys.modules["s3fs"] = None
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
try:
    open_storage(Location("s3a://bucket/table"))
except InvalidRequest as error:
    print(error.code, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("missing_package ")
    assert "pip install lakewarden[s3]" in done.stdout
