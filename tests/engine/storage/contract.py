"""What every storage promises, whatever stands behind it: one suite, inherited per adapter.

An adapter's test class gives the fixture `storage`, an empty one, and tells by the class
attributes what it can do and how many races its store bears within a test run.
"""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden.engine.kernel.errors import CorruptTable, InvalidRequest, LakewardenError
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Listing, Lost, Storage, Unknown, Won
from tests.engine.storage.races import race_in_processes, race_in_threads

ODD_NAMES = (
    "with space.parquet",
    "größe=5/日本.log",
    "emoji-\N{SNOWMAN}\N{ROCKET}.txt",
    "percent%2Fplus+hash#question?amp&.json",
    "brackets[a-z]*.avro",
    "colon:semi;comma,quote'tick`tilde~.x",
    ".hidden",
    "n" * 240,
    "/".join(["deep"] * 40),
)


class ReadingContract:
    """Files are there, whole, and found where they were put."""

    def test_a_put_file_reads_back(self, storage: Storage) -> None:
        storage.put("a/b/file.json", b"content")
        assert storage.read("a/b/file.json") == b"content"

    def test_put_replaces(self, storage: Storage) -> None:
        storage.put("file", b"a longer content")
        storage.put("file", b"short")
        assert storage.read("file") == b"short"

    def test_an_empty_file_is_a_file(self, storage: Storage) -> None:
        storage.put("empty", b"")
        assert storage.read("empty") == b""
        entry = storage.stat("empty")
        assert entry is not None
        assert entry.size_bytes == 0

    @pytest.mark.parametrize("path", ODD_NAMES, ids=lambda path: ascii(path)[:20])
    def test_odd_names_survive(self, storage: Storage, path: str) -> None:
        storage.put(path, b"odd")
        assert storage.read(path) == b"odd"
        assert [entry.path for entry in storage.walk("")] == [path]
        assert storage.create_exclusive(path, b"other") == Lost(b"odd")
        with storage.create(path) as stream:
            stream.write(b"again")
        with storage.open(path) as file:
            assert file.read() == b"again"
        assert storage.delete(path)
        assert storage.walk("") == ()

    def test_a_missing_file_is_named(self, storage: Storage) -> None:
        with pytest.raises(CorruptTable) as caught:
            storage.read("not/there")
        assert caught.value.code == "missing_file"
        assert storage.uri("not/there") in str(caught.value)

    def test_opening_a_missing_file_is_named(self, storage: Storage) -> None:
        with pytest.raises(CorruptTable) as caught:
            storage.open("not/there")
        assert caught.value.code == "missing_file"

    def test_a_folder_is_no_file(self, storage: Storage) -> None:
        storage.put("folder/file", b"content")
        assert storage.read_if_present("folder") is None
        assert storage.stat("folder") is None
        assert not storage.delete("folder")
        with pytest.raises(CorruptTable):
            storage.open("folder")
        assert storage.read("folder/file") == b"content"

    def test_a_missing_file_may_be_asked_for(self, storage: Storage) -> None:
        assert storage.read_if_present("not/there") is None
        assert storage.stat("not/there") is None
        assert storage.delete("not/there") is False

    def test_an_open_file_reads_any_range(self, storage: Storage) -> None:
        content = bytes(range(256)) * 64
        storage.put("file", content)
        with storage.open("file") as file:
            assert isinstance(file, pa.NativeFile)
            assert file.size() == len(content)
            assert file.read_at(10, 1000) == content[1000:1010]
            assert file.read_at(100, len(content) - 3) == content[-3:]
            file.seek(-4, 2)
            assert file.read() == content[-4:]

    def test_an_empty_file_opens(self, storage: Storage) -> None:
        storage.put("empty", b"")
        with storage.open("empty") as file:
            assert file.read() == b""

    def test_an_open_file_serves_many_threads(self, storage: Storage) -> None:
        content = bytes(range(256)) * 8
        storage.put("file", content)
        with storage.open("file") as file, ThreadPoolExecutor(4) as threads:
            starts = range(0, len(content), 64)
            parts = threads.map(lambda start: file.read_at(64, start), starts)
            assert b"".join(parts) == content

    def test_parquet_goes_in_and_out(self, storage: Storage) -> None:
        table = pa.table({"key": ["a", "b", "c"], "value": [1, 2, None]})
        with storage.create("data/table.parquet") as stream:
            pq.write_table(table, stream)
        with storage.open("data/table.parquet") as file:
            assert pq.ParquetFile(file).read(columns=["value"]) == table.select(["value"])

    def test_replacing_is_seen_whole(self, storage: Storage) -> None:
        contents = [bytes([letter]) * 200_000 for letter in b"ab"]
        storage.put("file", contents[0])
        done = threading.Event()

        def keep_replacing() -> None:
            for turn in range(20):
                storage.put("file", contents[turn % 2])
            done.set()

        with ThreadPoolExecutor(1) as threads:
            writer = threads.submit(keep_replacing)
            seen = {storage.read("file")}
            while not done.is_set():
                seen.add(storage.read("file"))
            writer.result()
        assert seen <= set(contents)


class ListingContract:
    """Listings are complete, sorted and relative to the storage."""

    def test_a_listing_has_the_direct_children(self, storage: Storage) -> None:
        for path in ("t/b", "t/a", "t/c/deep/x", "t/B", "other/y"):
            storage.put(path, b"123")
        found = storage.list("t")
        assert [entry.path for entry in found.files] == ["t/B", "t/a", "t/b"]
        assert found.folders == ("t/c",)
        assert {entry.size_bytes for entry in found.files} == {3}

    def test_a_known_file_is_shown_only_while_it_is_there(self, storage: Storage) -> None:
        storage.put("t/a", b"1")
        storage.put("t/b", b"1")
        known = {entry.path: entry for entry in storage.list("t").files}
        storage.delete("t/a")
        storage.put("t/c", b"1")
        assert [entry.path for entry in storage.list("t", known).files] == ["t/b", "t/c"]

    def test_the_root_lists_as_the_empty_folder(self, storage: Storage) -> None:
        storage.put("file", b"1")
        storage.put("folder/file", b"1")
        found = storage.list("")
        assert [entry.path for entry in found.files] == ["file"]
        assert found.folders == ("folder",)

    def test_a_walk_has_all_files_below(self, storage: Storage) -> None:
        paths = ["t/a", "t/a-b/c", "t/a/b", "t/z", "ta", "t0/x"]
        for path in paths:
            if path != "t/a":
                storage.put(path, b"1")
        assert [entry.path for entry in storage.walk("t")] == ["t/a-b/c", "t/a/b", "t/z"]

    def test_a_missing_folder_is_empty(self, storage: Storage) -> None:
        storage.put("there", b"1")
        assert storage.list("missing") == Listing((), ())
        assert storage.walk("missing") == ()
        assert storage.delete_folder("missing") == 0

    def test_a_file_is_no_folder(self, storage: Storage) -> None:
        storage.put("folder/file", b"1")
        assert storage.list("folder/file") == Listing((), ())
        assert storage.walk("folder/file") == ()
        assert storage.delete_folder("folder/file") == 0
        assert storage.read("folder/file") == b"1"

    def test_every_listing_tells_the_same(self, storage: Storage) -> None:
        storage.put("folder/file", b"12345")
        shown = [storage.stat("folder/file"), *storage.list("folder").files, *storage.walk("")]
        assert {entry and entry.path for entry in shown} == {"folder/file"}
        assert {entry and entry.size_bytes for entry in shown} == {5}
        times = [entry.modified_ms for entry in shown if entry]
        assert len(times) == 3
        # The head of an S3 object tells whole seconds only.
        assert max(times) - min(times) < 1000

    def test_what_others_wrote_shows_at_once(self, storage: Storage) -> None:
        other = open_storage(storage.location)
        assert storage.list("folder") == Listing((), ())
        other.put("folder/one", b"1")
        assert [entry.name for entry in storage.list("folder").files] == ["one"]
        other.put("folder/two", b"1")
        assert [entry.name for entry in storage.list("folder").files] == ["one", "two"]
        other.delete("folder/one")
        assert [entry.name for entry in storage.walk("folder")] == ["two"]
        assert storage.stat("folder/one") is None

    def test_a_folder_is_a_storage(self, storage: Storage) -> None:
        below = storage.below("partition").below("2024")
        below.put("file", b"1")
        assert storage.read("partition/2024/file") == b"1"
        assert [entry.path for entry in below.walk("")] == ["file"]
        assert below.uri("file") == storage.uri("partition/2024/file")
        assert open_storage(below.location).read("file") == b"1"

    def test_delete_removes_one_file(self, storage: Storage) -> None:
        storage.put("folder/a", b"1")
        storage.put("folder/ab", b"1")
        assert storage.delete("folder/a") is True
        assert storage.delete("folder/a") is False
        assert [entry.path for entry in storage.walk("")] == ["folder/ab"]

    def test_delete_folder_removes_all_below(self, storage: Storage) -> None:
        for path in ("t/a", "t/b/c", "t/b/[x]*", "tt/kept"):
            storage.put(path, b"1")
        assert storage.delete_folder("t") == 3
        assert [entry.path for entry in storage.walk("")] == ["tt/kept"]
        assert storage.list("").folders == ("tt",)

    def test_delete_folder_may_be_done_by_two(self, storage: Storage) -> None:
        for number in range(30):
            storage.put(f"t/{number % 3}/{number}", b"1")
        with ThreadPoolExecutor(2) as threads:
            removed = list(threads.map(storage.delete_folder, ["t", "t"]))
        assert storage.walk("t") == ()
        assert max(removed) <= 30


class StreamContract:
    """A streamed file appears whole, or never."""

    def test_a_stream_is_seen_when_closed(self, storage: Storage) -> None:
        with storage.create("folder/file") as stream:
            stream.write(b"one ")
            assert storage.read_if_present("folder/file") is None
            assert storage.walk("") == ()
            stream.write(b"two")
        assert storage.read("folder/file") == b"one two"

    def test_a_stream_replaces(self, storage: Storage) -> None:
        storage.put("file", b"old")
        with storage.create("file") as stream:
            stream.write(b"new")
            assert storage.read("file") == b"old"
        assert storage.read("file") == b"new"

    def test_an_empty_stream_is_an_empty_file(self, storage: Storage) -> None:
        storage.create("file").close()
        assert storage.read("file") == b""

    def test_an_exception_abandons_the_stream(self, storage: Storage) -> None:
        storage.put("file", b"old")

        def work() -> None:
            with storage.create("file") as stream:
                stream.write(b"half")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            work()
        assert storage.read("file") == b"old"
        assert len(storage.walk("")) == 1

    def test_a_dropped_stream_is_abandoned(self, storage: Storage) -> None:
        stream = storage.create("file")
        stream.write(b"half")
        del stream
        assert storage.walk("") == ()

    def test_closing_twice_is_closing_once(self, storage: Storage) -> None:
        stream = storage.create("file")
        stream.write(b"content")
        stream.close()
        storage.put("file", b"newer")
        stream.close()
        assert stream.closed
        assert storage.read("file") == b"newer"


class ExclusiveContract:
    """One winner; everybody else learns what the winner wrote."""

    thread_races: ClassVar[int] = 2000

    @pytest.fixture
    def racing(self, storage: Storage) -> Storage:
        """The storage for races, where it has to be a faster one."""
        return storage

    def test_the_first_wins(self, storage: Storage) -> None:
        assert storage.has_exclusive_create
        assert storage.create_exclusive("ledger/1", b"mine") == Won()
        assert storage.read("ledger/1") == b"mine"

    def test_the_second_learns_what_is_there(self, storage: Storage) -> None:
        storage.create_exclusive("ledger/1", b"mine")
        assert storage.create_exclusive("ledger/1", b"another") == Lost(b"mine")
        assert storage.read("ledger/1") == b"mine"

    def test_a_put_file_counts_as_well(self, storage: Storage) -> None:
        storage.put("ledger/1", b"put")
        assert storage.create_exclusive("ledger/1", b"mine") == Lost(b"put")

    def test_the_own_retry_wins(self, storage: Storage) -> None:
        storage.create_exclusive("ledger/1", b"mine")
        assert storage.create_exclusive("ledger/1", b"mine") == Won()

    def test_an_empty_file_has_no_author(self, storage: Storage) -> None:
        assert storage.create_exclusive("mark", b"") == Won()
        assert storage.create_exclusive("mark", b"") == Lost(b"")

    def test_after_a_removal_anybody_may_win(self, storage: Storage) -> None:
        storage.create_exclusive("ledger/1", b"mine")
        storage.delete("ledger/1")
        assert storage.create_exclusive("ledger/1", b"another") == Won()

    def test_two_threads_have_one_winner(self, racing: Storage) -> None:
        race_in_threads([racing, open_storage(racing.location)], self.thread_races)


class TouchContract:
    """What stands for a heartbeat: a new time, and nothing else."""

    def test_a_touched_file_keeps_its_content(self, storage: Storage) -> None:
        storage.put("folder/file", b"content")
        before = storage.stat("folder/file")
        assert storage.touch("folder/file") is True
        after = storage.stat("folder/file")
        assert storage.read("folder/file") == b"content"
        assert before is not None
        assert after is not None
        assert after.modified_ms >= before.modified_ms

    def test_touching_creates_nothing(self, storage: Storage) -> None:
        assert storage.touch("folder/file") is False
        assert storage.walk("") == ()

    def test_a_file_is_created_with_the_time_it_is_given(self, storage: Storage) -> None:
        assert storage.has_file_times
        assert storage.create_dated("folder/file", b"mine", 1_700_000_000_123) == Won()
        found = storage.stat("folder/file")
        assert found is not None
        assert (found.modified_ms, found.size_bytes) == (1_700_000_000_123, 4)
        assert storage.create_dated("folder/file", b"other", 1) == Lost(b"mine")
        assert storage.list("folder").files == (found,)


class ReplaceContract:
    """A file is replaced only in the state it was read in."""

    replace_races: ClassVar[int] = 300

    def test_the_state_that_was_read_is_replaced(self, storage: Storage) -> None:
        assert storage.has_conditional_replace
        storage.put("folder/file", b"one")
        read = storage.read_versioned("folder/file")
        assert read is not None
        assert read.content == b"one"
        won = storage.replace_if("folder/file", b"two", read.version)
        now = storage.read_versioned("folder/file")
        assert isinstance(won, Won)
        assert now is not None
        assert now.content == b"two"
        assert won.version in (None, now.version)

    def test_an_older_state_is_not(self, storage: Storage) -> None:
        storage.put("file", b"one")
        read = storage.read_versioned("file")
        assert read is not None
        open_storage(storage.location).put("file", b"other")
        assert storage.replace_if("file", b"two", read.version) == Lost(b"other")
        assert storage.read("file") == b"other"

    def test_every_write_is_a_new_state(self, storage: Storage) -> None:
        storage.create_exclusive("file", b"one")
        states = [storage.read_versioned("file")]
        for content in (b"two", b"three"):
            storage.put("file", content)
            states.append(storage.read_versioned("file"))
        assert [state and state.content for state in states] == [b"one", b"two", b"three"]
        assert len({state and state.version for state in states}) == 3
        assert storage.read_versioned("file") == states[-1]

    def test_the_own_retry_has_won(self, storage: Storage) -> None:
        storage.put("file", b"one")
        read = storage.read_versioned("file")
        assert read is not None
        assert storage.replace_if("file", b"two", read.version) == Won()
        assert storage.replace_if("file", b"two", read.version) == Won()

    def test_what_is_gone_is_not_replaced(self, storage: Storage) -> None:
        assert storage.read_versioned("file") is None
        storage.put("file", b"one")
        read = storage.read_versioned("file")
        assert read is not None
        storage.delete("file")
        assert isinstance(storage.replace_if("file", b"two", read.version), Unknown)
        assert storage.read_if_present("file") is None

    def test_of_two_threads_one_replaces(self, storage: Storage) -> None:
        rivals = [storage, open_storage(storage.location)]
        storage.put("file", b"start")
        start = threading.Barrier(len(rivals))

        def run(rival: int) -> list[bool]:
            answers = []
            for turn in range(self.replace_races):
                read = rivals[rival].read_versioned("file")
                assert read is not None
                start.wait()
                payload = f"{rival} {turn}".encode()
                answers.append(rivals[rival].replace_if("file", payload, read.version) == Won())
                start.wait()
            return answers

        with ThreadPoolExecutor(len(rivals)) as threads:
            answers = list(threads.map(run, range(len(rivals))))
        assert all(sum(pair) == 1 for pair in zip(*answers, strict=True))


class ProcessContract:
    """Several processes are as good as several threads."""

    process_races: ClassVar[int] = 200

    def test_two_processes_have_one_winner(self, storage: Storage) -> None:
        race_in_processes(storage, self.process_races)


class AddressContract:
    """A storage is known by its location, and stays within it."""

    @pytest.mark.parametrize(
        "path", ["/etc/passwd", "../up", "a/../../up", "a//b", "a/./b", "a/", "", "nul\0", "\ud800"]
    )
    def test_no_file_outside(self, storage: Storage, path: str) -> None:
        calls = (storage.read, storage.open, storage.stat, storage.delete, storage.create)
        for call in calls:
            with pytest.raises(InvalidRequest, match="path") as caught:
                call(path)
            assert caught.value.code == "invalid_path"
        with pytest.raises(InvalidRequest):
            storage.put(path, b"")
        with pytest.raises(InvalidRequest):
            storage.create_exclusive(path, b"")
        with pytest.raises(InvalidRequest):
            storage.touch(path)
        with pytest.raises(InvalidRequest):
            storage.read_versioned(path)
        with pytest.raises(InvalidRequest):
            storage.replace_if(path, b"", "1")

    @pytest.mark.parametrize("folder", ["/etc", "..", "a/..", "a//b", "a/"])
    def test_no_folder_outside(self, storage: Storage, folder: str) -> None:
        for call in (storage.list, storage.walk, storage.below, storage.delete_folder):
            with pytest.raises(InvalidRequest) as caught:
                call(folder)
            assert caught.value.code == "invalid_path"

    def test_a_pickled_location_opens_the_same(self, storage: Storage) -> None:
        storage.put("folder/file", b"content")
        location = pickle.loads(pickle.dumps(storage.location))
        again = open_storage(location)
        assert again.location == storage.location
        assert again.read("folder/file") == b"content"
        assert again.uri("folder/file") == storage.uri("folder/file")

    def test_an_error_survives_pickling(self, storage: Storage) -> None:
        with pytest.raises(CorruptTable) as caught:
            storage.read("missing")
        again = pickle.loads(pickle.dumps(caught.value))
        assert isinstance(again, LakewardenError)
        assert str(again) == str(caught.value)


class StorageContract(
    ReadingContract, ListingContract, StreamContract, ExclusiveContract, AddressContract
):
    """Everything that holds inside one process."""
