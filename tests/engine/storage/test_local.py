"""Local storage: the contract, and what only a local file system can show."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakewarden.engine.kernel.errors import (
    CorruptTable,
    InvalidRequest,
    LakewardenError,
    Unavailable,
)
from lakewarden.engine.storage.drafts import ABANDONED_AFTER_MS, DRAFT_SUFFIX
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Listing, Location, Lost, Storage, Won
from lakewarden.engine.storage.streams import drop_stale_checksum
from tests.engine.storage.contract import ProcessContract, StorageContract, TouchContract
from tests.work_counting import counted

DRAFT_FOLDER = ".hoodie/.lakewarden/temp"


_heard: list[list[tuple[str, object]]] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _heard and event in ("os.link", "os.remove"):
        _heard[-1].append((event, arguments[0]))


# An audit hook stays for the life of the process, so it listens only while somebody wants it.
sys.addaudithook(_hear)


@contextmanager
def system_calls() -> Iterator[list[tuple[str, object]]]:
    """What Python tells its auditors about links and removals, in order."""
    _heard.append([])
    try:
        yield _heard[-1]
    finally:
        _heard.pop()


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    """The local storage is tested on a disk."""
    return disk_path


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(Location(str(tmp_path / "table")))


class TestLocalStorage(StorageContract, TouchContract, ProcessContract):
    @pytest.fixture
    def racing(self, tmp_path: Path) -> Storage:
        # Flushing 4,000 files would measure the disk; it happens before the race for the name.
        return open_storage(Location(str(tmp_path / "race"), {"durable": False}))


class TestConditionalReplace:
    def test_it_is_refused_by_name(self, storage: Storage) -> None:
        storage.put("file", b"1")
        assert not storage.has_conditional_replace
        for call in (
            lambda: storage.read_versioned("file"),
            lambda: storage.replace_if("file", b"2", "1"),
        ):
            with pytest.raises(InvalidRequest) as caught:
                call()
            assert caught.value.code == "unsupported_conditional_replace"
        assert storage.read("file") == b"1"


class TestTouching:
    def test_an_old_file_becomes_young(self, storage: Storage, tmp_path: Path) -> None:
        storage.put("file", b"1")
        os.utime(tmp_path / "table/file", (1, 1))
        storage.touch("file")
        assert os.stat(tmp_path / "table/file").st_mtime > time.time() - 60


class TestAddresses:
    def test_a_relative_path_becomes_absolute(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert open_storage(Location("some/table/")).location.uri == f"{tmp_path}/some/table"

    @pytest.mark.parametrize("scheme", ["", "file:", "file://", "file://localhost"])
    def test_every_spelling_finds_the_folder(self, tmp_path: Path, scheme: str) -> None:
        storage = open_storage(Location(f"{scheme}{tmp_path}"))
        storage.put("file", b"1")
        assert (tmp_path / "file").read_bytes() == b"1"
        assert storage.uri("file") == f"{scheme}{tmp_path}/file"

    @pytest.mark.parametrize("uri", ["", "file:", "file://", "file://other/folder", "file:rel"])
    def test_an_address_without_a_folder_is_refused(self, uri: str) -> None:
        with pytest.raises(InvalidRequest) as caught:
            open_storage(Location(uri))
        assert caught.value.code == "invalid_location"


class TestChecksumFiles:
    @pytest.fixture
    def stale(self, tmp_path: Path) -> Path:
        (tmp_path / "table").mkdir()
        stale = tmp_path / "table/.hoodie.properties.crc"
        stale.write_bytes(b"crc\0")
        os.utime(stale, (time.time() - 3600, time.time() - 3600))
        return stale

    def test_they_are_shown(self, storage: Storage, stale: Path) -> None:
        assert [entry.name for entry in storage.list("").files] == [stale.name]

    def test_put_removes_the_one_of_its_file(self, storage: Storage, stale: Path) -> None:
        storage.put("other", b"1")
        assert stale.exists()
        storage.put("hoodie.properties", b"1")
        assert not stale.exists()

    def test_create_removes_the_one_of_its_file(self, storage: Storage, stale: Path) -> None:
        storage.create("hoodie.properties").close()
        assert not stale.exists()

    def test_winning_removes_the_one_left_over(self, storage: Storage, stale: Path) -> None:
        assert storage.create_exclusive("hoodie.properties", b"1") == Won()
        assert not stale.exists()

    def test_the_one_left_over_goes_before_its_file_comes(
        self, storage: Storage, stale: Path
    ) -> None:
        # In the other order a reader between the two, or a crash, would leave a false checksum.
        with system_calls() as calls:
            storage.create_exclusive("hoodie.properties", b"1")
        removed = calls.index(("os.remove", str(stale)))
        linked = next(number for number, (name, _) in enumerate(calls) if name == "os.link")
        assert removed < linked

    def test_a_young_one_is_removed_by_the_winner_only(self, storage: Storage, stale: Path) -> None:
        os.utime(stale)
        place = str(stale.parent / "hoodie.properties")
        drop_stale_checksum(place, now=time.time())
        assert stale.exists()
        assert storage.create_exclusive("hoodie.properties", b"1") == Won()
        assert not stale.exists()

    def test_losing_leaves_the_one_of_the_winner(self, storage: Storage, stale: Path) -> None:
        (stale.parent / "hoodie.properties").write_bytes(b"java")
        assert storage.create_exclusive("hoodie.properties", b"1") == Lost(b"java")
        assert stale.exists()

    def test_delete_removes_both(self, storage: Storage, stale: Path) -> None:
        storage.put("hoodie.properties", b"1")
        stale.write_bytes(b"crc\0")
        storage.delete("hoodie.properties")
        assert storage.list("") == Listing((), ())

    def test_deleting_nothing_leaves_it(self, storage: Storage, stale: Path) -> None:
        assert not storage.delete("hoodie.properties")
        assert stale.exists()


class TestDrafts:
    def test_a_table_keeps_them_in_its_private_folder(
        self, storage: Storage, tmp_path: Path
    ) -> None:
        storage.put(".hoodie/hoodie.properties", b"1")
        partition = storage.below("partition")
        with partition.create("file.parquet") as stream:
            stream.write(b"half")
            assert list((tmp_path / "table/partition").iterdir()) == []
            (draft,) = (tmp_path / "table" / DRAFT_FOLDER).iterdir()
            assert draft.name.endswith(".tmp")
            assert storage.walk(DRAFT_FOLDER) == ()
        assert list((tmp_path / "table" / DRAFT_FOLDER).iterdir()) == []

    def test_their_folder_may_go_at_any_moment(self, storage: Storage, tmp_path: Path) -> None:
        storage.put(".hoodie/a", b"1")
        (tmp_path / "table" / DRAFT_FOLDER).rmdir()
        storage.put(".hoodie/a", b"2")
        assert storage.read(".hoodie/a") == b"2"

    def test_elsewhere_they_stand_hidden_beside_their_target(
        self, storage: Storage, tmp_path: Path
    ) -> None:
        with storage.create("folder/file") as stream:
            stream.write(b"half")
            (draft,) = (tmp_path / "table/folder").iterdir()
            assert draft.name.startswith(".")
            assert draft.name.endswith(".tmp")
            assert storage.list("folder") == Listing((), ())

    def test_none_stands_among_the_markers_of_an_instant(
        self, storage: Storage, tmp_path: Path
    ) -> None:
        # There is no private folder where a file has its name.
        private = tmp_path / "table" / DRAFT_FOLDER
        private.parent.mkdir(parents=True)
        private.touch()
        with storage.create(".hoodie/.temp/20260101/p=a/f.parquet.marker.CREATE") as stream:
            stream.write(b"half")
            markers = tmp_path / "table/.hoodie/.temp"
            (draft,) = (one for one in markers.rglob("*") if one.is_file())
            assert draft.parent == markers

    def test_no_draft_is_left(self, storage: Storage, tmp_path: Path) -> None:
        storage.put("a", b"1")
        storage.create_exclusive("a", b"2")
        storage.create_exclusive("b", b"2")
        with pytest.raises(RuntimeError), storage.create("c"):
            raise RuntimeError
        dropped = storage.create("d")
        del dropped
        assert sorted(path.name for path in (tmp_path / "table").iterdir()) == ["a", "b"]

    def test_those_of_the_dead_are_removed_in_the_end(
        self, storage: Storage, tmp_path: Path
    ) -> None:
        folder = tmp_path / "table" / DRAFT_FOLDER
        folder.mkdir(parents=True)
        for name, age_ms in (("dead", ABANDONED_AFTER_MS + 60_000), ("alive", 60_000)):
            draft = folder / f"{name}{DRAFT_SUFFIX}"
            draft.write_bytes(b"half")
            os.utime(draft, (time.time() - age_ms / 1000,) * 2)
        storage.put("file", b"1")
        assert [path.name for path in folder.iterdir()] == [f"alive{DRAFT_SUFFIX}"]

    def test_delete_folder_takes_them_along_uncounted(
        self, storage: Storage, tmp_path: Path
    ) -> None:
        storage.put("folder/file", b"1")
        (tmp_path / f"table/folder/.x{DRAFT_SUFFIX}").write_bytes(b"half")
        assert storage.delete_folder("folder") == 1
        assert not (tmp_path / "table/folder").exists()


class TestFlushing:
    @pytest.mark.parametrize(
        ("path", "names"),
        [
            ("p/f.parquet", 1),
            (".hoodie/timeline/1.commit.requested", 1),
            (".hoodie/.lakewarden/ledger/1/000001.json", 1),
            (".hoodie/lock", 0),
            (".hoodie/.heartbeat/1", 0),
            (".hoodie/.lakewarden/beats/1.1.json", 0),
            (".hoodie/metadata/.hoodie/.lakewarden/beats/1.1.json", 0),
        ],
    )
    def test_all_names_are_but_those_of_signs_of_life(
        self, storage: Storage, path: str, names: int
    ) -> None:
        for make in (storage.put, storage.create_exclusive):
            work = counted(lambda make=make: make(path, b"1"))  # type: ignore[misc]
            assert work.of("sync_folder") == names
            assert work.of("LocalStorage._sync") == 1
            storage.delete(path)

    def test_an_empty_file_has_a_name_only(self, storage: Storage) -> None:
        for make in (storage.put, storage.create_exclusive):
            work = counted(lambda make=make: make("p/f", b""))  # type: ignore[misc]
            assert (work.of("LocalStorage._sync"), work.of("sync_folder")) == (0, 1)
            storage.delete("p/f")


class TestTheFileSystem:
    def test_others_may_read_what_the_mask_allows(self, storage: Storage, tmp_path: Path) -> None:
        before = os.umask(0o027)
        try:
            storage.put("put", b"1")
            storage.create_exclusive("exclusive", b"1")
            storage.create("stream").close()
        finally:
            os.umask(before)
        modes = {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "table").iterdir()}
        assert modes == {"0o640"}

    def test_modification_times_are_those_of_the_files(
        self, storage: Storage, tmp_path: Path
    ) -> None:
        storage.put("file", b"1")
        os.utime(tmp_path / "table/file", ns=(0, 1_700_000_000_123_456_789))
        entry = storage.stat("file")
        assert entry is not None
        assert entry.modified_ms == 1_700_000_000_123
        assert storage.walk("") == (entry,)

    def test_a_link_out_of_the_root_is_neither_followed_nor_passed_over(
        self, storage: Storage, tmp_path: Path
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/file").write_bytes(b"1")
        storage.put("t/file", b"1")
        (tmp_path / "table/t/linked").symlink_to(tmp_path / "elsewhere")
        (tmp_path / "table/t/dangling").symlink_to(tmp_path / "nowhere")
        for call in (
            lambda: storage.walk(""),
            lambda: storage.list("t"),
            lambda: storage.list("t/linked"),
            lambda: storage.stat("t/linked/file"),
            lambda: storage.read("t/linked/file"),
            lambda: storage.open("t/linked/file"),
            lambda: storage.touch("t/linked/file"),
            lambda: storage.put("t/linked/new", b"2"),
            lambda: storage.create("t/linked/new"),
            lambda: storage.create_exclusive("t/linked/new", b"2"),
            lambda: storage.delete("t/linked/file"),
            lambda: storage.delete_folder("t/linked"),
        ):
            with pytest.raises(CorruptTable) as caught:
                call()
            assert caught.value.code == "link_leaves_table"
            assert str(tmp_path / "table/t/linked") in str(caught.value)
        assert [one.name for one in (tmp_path / "elsewhere").iterdir()] == ["file"]

    def test_a_folder_is_removed_with_its_links_and_not_with_what_they_lead_to(
        self, storage: Storage, tmp_path: Path
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/file").write_bytes(b"1")
        storage.put("t/file", b"1")
        (tmp_path / "table/t/linked").symlink_to(tmp_path / "elsewhere")
        storage.delete_folder("t")
        assert (tmp_path / "elsewhere/file").exists()
        assert not (tmp_path / "table/t").exists()

    def test_a_link_into_the_folder_of_the_tables_own_files_is_refused(
        self, storage: Storage, tmp_path: Path
    ) -> None:
        storage.put(".hoodie/hoodie.properties", b"1")
        storage.put("t/file", b"1")
        (tmp_path / "table/own").symlink_to(".hoodie")
        (tmp_path / "table/same").symlink_to("t")
        with pytest.raises(CorruptTable):
            storage.delete("own/hoodie.properties")
        assert storage.read(".hoodie/hoodie.properties") == b"1"
        assert storage.read("same/file") == b"1"

    def test_a_draft_is_not_made_where_a_link_leads(self, storage: Storage, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        storage.put(".hoodie/.lakewarden/file", b"1")
        remains = tmp_path / "table/.hoodie/.lakewarden/temp"
        remains.rmdir()
        remains.symlink_to(tmp_path / "elsewhere")
        with storage.create("file") as file:
            file.write(b"1")
            assert not list((tmp_path / "elsewhere").iterdir())
        assert storage.read("file") == b"1"

    def test_a_loop_of_links_ends_with_an_error(self, storage: Storage, tmp_path: Path) -> None:
        storage.put("file", b"1")
        (tmp_path / "table/loop").symlink_to(tmp_path / "table")
        with pytest.raises(Unavailable, match="symbolic links"):
            storage.walk("")

    def test_a_file_in_the_way_of_a_folder_is_told(self, storage: Storage) -> None:
        storage.put("file", b"1")
        for write in (storage.put, storage.create_exclusive):
            with pytest.raises(Unavailable) as caught:
                write("file/inside", b"2")
            assert storage.uri("file/inside") in str(caught.value)

    def test_a_name_too_long_is_a_wrong_call(self, storage: Storage) -> None:
        with pytest.raises(InvalidRequest) as caught:
            storage.put("n" * 300, b"1")
        assert caught.value.code == "invalid_path"


class TestVanishedRoot:
    @pytest.fixture
    def vanished(self, storage: Storage, tmp_path: Path) -> Storage:
        storage.put("folder/file", b"1")
        (tmp_path / "table").rename(tmp_path / "unmounted")
        return storage

    def test_it_is_not_an_empty_table(self, vanished: Storage) -> None:
        for call in (vanished.list, vanished.walk, vanished.stat, vanished.read, vanished.open):
            with pytest.raises(Unavailable, match="is gone") as caught:
                call("folder")
            assert caught.value.code == "storage_unavailable"

    def test_nothing_is_written_in_its_place(self, vanished: Storage, tmp_path: Path) -> None:
        for write in (vanished.put, vanished.below("folder").create_exclusive):
            with pytest.raises(Unavailable, match="is gone"):
                write("file", b"1")
        with pytest.raises(Unavailable, match="is gone"):
            vanished.create("file")
        assert not (tmp_path / "table").exists()

    def test_one_we_removed_is_empty(self, storage: Storage) -> None:
        storage.put("folder/file", b"1")
        assert storage.delete_folder("") == 1
        assert storage.walk("") == ()
        storage.put("new", b"1")
        assert storage.read("new") == b"1"


RESTRICTED = """
import os, resource, sys
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location

storage = open_storage(Location(sys.argv[1]))

def stream():
    with storage.create("new") as file:
        file.write(b"x" * 100_000)

{restriction}
calls = (
    lambda: storage.put("new", b"x" * 100_000),
    lambda: storage.create_exclusive("new", b"x" * 100_000),
    stream,
    lambda: storage.delete("old") if {deletes} else storage.put("new", b"x" * 100_000),
)
for call in calls:
    try:
        call()
    except LakewardenError as error:
        print(error.code, error)
"""
# The superuser may write everywhere, so become somebody else; a small limit stands for a full disk.
POWERLESS = "if os.geteuid() == 0: os.seteuid(65534)"
FULL = "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))"


def run_restricted(folder: Path, restriction: str, *, deletes: bool) -> list[str]:
    code = RESTRICTED.format(restriction=restriction, deletes=deletes)
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


class TestRefusals:
    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        # Not below pytest's own folder, which nobody else may enter.
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            folder.chmod(0o755)
            (folder / "old").write_bytes(b"1")
            yield folder

    def test_a_folder_one_may_not_write(self, folder: Path) -> None:
        folder.chmod(0o555)
        answers = run_restricted(folder, POWERLESS, deletes=True)
        folder.chmod(0o755)
        assert [answer.split()[0] for answer in answers] == ["storage_denied"] * 4
        assert all(str(folder) in answer for answer in answers)
        assert [path.name for path in folder.iterdir()] == ["old"]

    def test_a_folder_one_may_not_enter(self, folder: Path) -> None:
        folder.chmod(0o700 if os.geteuid() == 0 else 0)
        answers = run_restricted(folder, POWERLESS, deletes=True)
        folder.chmod(0o755)
        assert [answer.split()[0] for answer in answers] == ["storage_denied"] * 4

    def test_a_full_disk(self, folder: Path) -> None:
        answers = run_restricted(folder, FULL, deletes=False)
        assert [answer.split()[0] for answer in answers] == ["storage_full"] * 4
        assert all("Free some space" in answer for answer in answers)
        assert [path.name for path in folder.iterdir()] == ["old"]

    def test_an_error_names_operation_and_path(self, storage: Storage, tmp_path: Path) -> None:
        (tmp_path / "table").write_bytes(b"a file where the table should be")
        with pytest.raises(LakewardenError) as caught:
            storage.put("file", b"1")
        assert caught.value.operation == "write"
        assert caught.value.path == storage.uri("file")


def test_a_file_system_of_whole_seconds_gives_no_exact_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_utime = os.utime

    def utime(place: int, ns: tuple[int, int]) -> None:
        true_utime(place, ns=(ns[0] // 10**9 * 10**9, ns[1] // 10**9 * 10**9))

    monkeypatch.setattr(os, "utime", utime)
    storage = open_storage(Location(str(tmp_path)))
    assert storage.create_dated("whole", b"1", 1_700_000_000_000) == Won()
    with pytest.raises(InvalidRequest) as refused:
        storage.create_dated("part", b"1", 1_700_000_000_123)
    assert refused.value.code == "unsupported_file_times"
    assert [entry.name for entry in storage.walk("")] == ["whole"]
