"""Object storage over protocols that answer strangely: out of order, twice, with secrets."""

import pickle
import traceback
from typing import Any, ClassVar
from uuid import uuid4

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from lakewarden.engine.kernel.errors import InvalidRequest, Unavailable
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location, Lost, Storage, Unknown, Won
from tests.engine.storage.contract import ListingContract, ReadingContract, StreamContract

SECRET = "SECRET-NOBODY-MAY-SEE"


class ScrambledFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """Lists backwards, and every file twice."""

    protocol = "scrambled"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        found = super().ls(path, detail=detail, **options)
        return [*reversed(found), *found]


class RememberingFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """Keeps what it listed once, as remote file systems do, and takes no option against it."""

    protocol = "remembering"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def __init__(self) -> None:
        super().__init__()

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        if path not in self.dircache:
            self.dircache[path] = super().ls(path, detail=True, **options)
            if path not in self.dircache:
                return super().ls(path, detail=detail, **options)
        found = self.dircache[path]
        return found if detail else [one["name"] for one in found]


class ChattyFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """Fails with the secrets in its words, before or after the effect."""

    protocol = "chatty"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    fails_before: ClassVar[type[Exception] | None] = None
    fails_after: ClassVar[type[Exception] | None] = None

    def pipe_file(self, path: str, value: bytes, **options: Any) -> None:
        if self.fails_before is not None:
            raise self.fails_before(f"signature of {SECRET}")
        super().pipe_file(path, value, **options)
        if self.fails_after is not None:
            raise self.fails_after(f"signature of {SECRET}") from RuntimeError(SECRET)


@pytest.fixture(autouse=True)
def _taught_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    for dialect in (ScrambledFileSystem, RememberingFileSystem, ChattyFileSystem):
        fsspec.register_implementation(dialect.protocol, dialect, clobber=True)
        monkeypatch.setattr(dialect, "store", {})
        monkeypatch.setattr(dialect, "pseudo_dirs", [""])


class TestScrambledAnswers(ReadingContract, ListingContract, StreamContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return open_storage(Location(f"scrambled://{uuid4().hex}/table"))


class TestRememberedListings(ListingContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return open_storage(Location("remembering://place/table"))


@pytest.fixture
def chatty() -> Storage:
    return open_storage(Location("chatty://place/table", {"token": SECRET}))


def test_an_unknown_protocol_promises_no_exclusive_create(chatty: Storage) -> None:
    assert not chatty.has_exclusive_create


def test_a_single_writer_may_create_all_the_same(chatty: Storage) -> None:
    assert chatty.create_exclusive("file", b"mine") == Won()
    assert chatty.create_exclusive("file", b"mine") == Won()
    assert chatty.create_exclusive("file", b"another") == Lost(b"mine")


@pytest.mark.parametrize(
    ("raised", "code"), [(OSError, "storage_unavailable"), (PermissionError, "storage_denied")]
)
def test_a_failure_has_a_code_and_no_secret(
    chatty: Storage, monkeypatch: pytest.MonkeyPatch, raised: type[Exception], code: str
) -> None:
    monkeypatch.setattr(ChattyFileSystem, "fails_after", raised)
    with pytest.raises(Unavailable) as caught:
        chatty.put("file", b"1")
    error = caught.value
    assert error.code == code
    assert error.path == "chatty://place/table/file"
    assert error.__context__ is None
    shown = ["".join(traceback.format_exception(error)), repr(error), repr(chatty)]
    assert not [text for text in shown if SECRET in text]
    assert SECRET not in pickle.dumps(error).decode("latin-1")


def test_a_create_that_failed_after_its_effect_is_won(
    chatty: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChattyFileSystem, "fails_after", OSError)
    assert chatty.create_exclusive("file", b"mine") == Won()


def test_a_create_that_failed_without_a_trace_is_unknown(
    chatty: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChattyFileSystem, "fails_before", OSError)
    answer = chatty.create_exclusive("file", b"mine")
    assert isinstance(answer, Unknown)
    assert SECRET not in answer.cause


@pytest.mark.parametrize("uri", ["nonsense://a/b", "simplecache::s3://a/b://c", "1a://b"])
def test_an_unknown_scheme_is_refused(uri: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        open_storage(Location(uri))
    assert caught.value.code == "unknown_storage"
