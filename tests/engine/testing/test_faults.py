"""The fault wrapper: each fault does what it says, is counted, and can be replayed from a line."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.clock import ManualClock
from lakewarden.engine.kernel.errors import InvalidRequest, Unavailable
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.port import Entry, Lost, Storage, Unknown, Won, listing, ordered
from lakewarden.engine.testing.fault_plan import (
    Fault,
    FaultKind,
    FaultPlan,
    crash_plans,
    drawn_plan,
    parse_plan,
)
from lakewarden.engine.testing.faults import Crashed, FaultyStorage
from tests.engine.storage.contract import ReplaceContract, StorageContract, TouchContract

CONTENT = b"0123456789" * 10


def faulty(line: str, inner: Storage | None = None) -> FaultyStorage:
    return FaultyStorage(inner or fresh_memory_storage(), parse_plan(line))


class TestWithoutFaults(StorageContract, TouchContract, ReplaceContract):
    """A wrapped storage keeps every promise, even when listings come mixed."""

    thread_races = 200

    @pytest.fixture
    def storage(self) -> Storage:
        return FaultyStorage(fresh_memory_storage(), FaultPlan(mixes_listings=True))


class TestOneFault:
    def test_failing_before_has_no_effect(self) -> None:
        storage = faulty("1:fail_before")
        with pytest.raises(Unavailable, match="fail_before"):
            storage.put("file", CONTENT)
        assert storage.read_if_present("file") is None

    def test_failing_after_has_its_effect(self) -> None:
        storage = faulty("1:fail_after")
        with pytest.raises(Unavailable, match="fail_after"):
            storage.put("file", CONTENT)
        assert storage.read("file") == CONTENT

    @pytest.mark.parametrize("seed", range(5))
    def test_a_torn_file_is_a_prefix(self, seed: int) -> None:
        storage = faulty(f"seed={seed} 1:torn")
        with pytest.raises(Unavailable, match="torn"):
            storage.put("file", CONTENT)
        torn = storage.read("file")
        assert torn == CONTENT[: len(torn)]
        assert len(torn) < len(CONTENT)

    def test_a_torn_create_is_there(self) -> None:
        storage = faulty("seed=3 1:torn")
        with pytest.raises(Unavailable):
            storage.create_exclusive("file", CONTENT)
        assert CONTENT.startswith(storage.read("file"))
        assert isinstance(storage.create_exclusive("file", CONTENT), Lost)

    def test_a_torn_removal_leaves_some(self) -> None:
        left = set()
        for seed in range(20):
            inner = fresh_memory_storage()
            for number in range(4):
                inner.put(f"folder/{number}", b"1")
            with pytest.raises(Unavailable):
                faulty(f"seed={seed} 1:torn", inner).delete_folder("folder")
            left.add(len(inner.walk("folder")))
        assert left == {0, 1, 2, 3, 4}

    def test_a_stream_fails_where_it_becomes_visible(self) -> None:
        storage = faulty("seed=1 2:torn")
        with pytest.raises(Unavailable), storage.create("file") as stream:
            stream.write(CONTENT)
        assert [call.operation for call in storage.calls] == ["create", "close"]
        assert CONTENT.startswith(storage.read("file"))

    def test_a_lost_answer_is_unknown_and_done(self) -> None:
        storage = faulty("1:lost_answer")
        assert isinstance(storage.create_exclusive("file", CONTENT), Unknown)
        assert storage.read("file") == CONTENT

    def test_a_lost_request_is_unknown_and_not_done(self) -> None:
        storage = faulty("1:lost_request")
        assert isinstance(storage.create_exclusive("file", CONTENT), Unknown)
        assert storage.read_if_present("file") is None

    @pytest.mark.parametrize(
        ("fault", "content"), [("lost_answer", b"new"), ("lost_request", b"1")]
    )
    def test_a_replacement_without_an_answer_is_unknown(self, fault: str, content: bytes) -> None:
        storage = faulty(f"3:{fault}")
        storage.put("file", b"1")
        read = storage.read_versioned("file")
        assert read is not None
        assert isinstance(storage.replace_if("file", b"new", read.version), Unknown)
        assert storage.read("file") == content

    def test_elsewhere_a_lost_answer_is_a_failure(self) -> None:
        storage = faulty("1:lost_answer")
        with pytest.raises(Unavailable):
            storage.put("file", CONTENT)
        assert storage.read("file") == CONTENT

    def test_a_retried_create_is_told_that_it_exists_and_knows_itself(self) -> None:
        storage = faulty("1:retried 2:retried")
        assert storage.create_exclusive("file", CONTENT) == Won()
        assert storage.create_exclusive("file", b"other") == Lost(CONTENT)

    def test_a_retried_removal_finds_nothing(self) -> None:
        storage = faulty("2:retried")
        storage.put("file", CONTENT)
        assert storage.delete("file") is False

    def test_a_delay_passes_on_the_clock(self) -> None:
        clock = ManualClock(0)
        storage = FaultyStorage(fresh_memory_storage(), parse_plan("2:delayed+1500ms"), clock)
        storage.put("a", b"1")
        assert clock.now_ms() == 0
        storage.put("b", b"1")
        assert clock.now_ms() == 1500
        assert storage.read("b") == b"1"

    def test_calls_are_counted_over_all_folders(self) -> None:
        storage = faulty("3:fail_before")
        storage.put("a", b"1")
        storage.below("folder").stat("b")
        with pytest.raises(Unavailable):
            storage.below("folder").below("deep").read("c")
        assert [str(call) for call in storage.calls] == [
            "1 put a",
            "2 stat folder/b",
            "3 read folder/deep/c",
        ]


class TestCrashes:
    def test_no_call_gets_through_after_a_crash(self) -> None:
        inner = fresh_memory_storage()
        storage = faulty("1:fail_after!", inner)
        with pytest.raises(Crashed):
            storage.put("file", CONTENT)
        for call in (storage.read, storage.delete, storage.below("folder").stat, storage.create):
            with pytest.raises(Crashed):
                call("file")
        assert inner.read("file") == CONTENT

    def test_a_handler_of_errors_cannot_clean_up_after_a_crash(self) -> None:
        inner = fresh_memory_storage()
        storage = faulty("2:fail_before!", inner)

        def work() -> None:
            try:
                storage.put("first", CONTENT)
                storage.put("second", CONTENT)
            except Exception:
                storage.delete("first")

        with pytest.raises(Crashed, match=r"2 put second.*2:fail_before!"):
            work()
        assert [entry.path for entry in inner.walk("")] == ["first"]

    def test_an_open_stream_dies_with_the_process(self) -> None:
        inner = fresh_memory_storage()
        storage = faulty("2:fail_before!", inner)

        def work() -> None:
            with storage.create("file") as stream:
                stream.write(CONTENT)
                storage.stat("other")

        with pytest.raises(Crashed):
            work()
        assert inner.walk("") == ()

    def test_the_matrix_has_every_way_to_die(self) -> None:
        storage = faulty("")
        storage.put("a", b"1")
        storage.read("a")
        storage.delete("a")
        assert [str(plan) for plan in crash_plans(storage.calls, seed=9)] == [
            "seed=9 1:fail_before!",
            "seed=9 1:fail_after!",
            "seed=9 1:torn!",
            "seed=9 2:fail_before!",
            "seed=9 3:fail_before!",
            "seed=9 3:fail_after!",
        ]

    def test_every_crash_point_of_a_small_operation_is_reached(self) -> None:
        def work(storage: Storage) -> None:
            storage.create_exclusive("claim", b"owner")
            with storage.create("output") as stream:
                stream.write(CONTENT)
            storage.put("commit", b"done")

        rehearsal = faulty("")
        work(rehearsal)
        outcomes = set()
        for plan in crash_plans(rehearsal.calls):
            inner = fresh_memory_storage()
            with pytest.raises(Crashed):
                work(FaultyStorage(inner, plan))
            outcomes.add(tuple(entry.path for entry in inner.walk("")))
        assert outcomes == {
            (),
            ("claim",),
            ("claim", "output"),
            ("claim", "commit", "output"),
        }


faults = st.builds(
    Fault,
    call=st.integers(1, 10_000),
    kind=st.sampled_from(FaultKind),
    is_fatal=st.booleans(),
    delay_ms=st.integers(0, 100_000),
)
plans = st.builds(
    FaultPlan,
    faults=st.lists(faults, max_size=5).map(tuple),
    seed=st.integers(0, 2**63),
    mixes_listings=st.booleans(),
)


class TestReplay:
    @given(plans)
    def test_a_plan_is_one_line_that_gives_it_back(self, plan: FaultPlan) -> None:
        assert "\n" not in str(plan)
        assert parse_plan(str(plan)) == plan

    def test_a_seed_draws_the_same_plan(self) -> None:
        plan = drawn_plan(7, calls=500, rate=0.1)
        assert plan == drawn_plan(7, calls=500, rate=0.1)
        assert plan != drawn_plan(8, calls=500, rate=0.1)
        assert 20 < len(plan.faults) < 90
        assert parse_plan(str(plan)) == plan

    @pytest.mark.parametrize("line", ["1:explode", "seed=x", "fail_before", "1:torn?"])
    def test_what_is_no_plan_is_refused(self, line: str) -> None:
        with pytest.raises(InvalidRequest) as caught:
            parse_plan(line)
        assert caught.value.code == "invalid_fault_plan"


class TestOrder:
    """The sorting is ours: without it, mixed listings would reach the engine mixed."""

    entries = st.lists(
        st.builds(Entry, st.sampled_from("abcdefgh"), st.integers(0, 9), st.integers(0, 9))
    )

    @given(entries, st.randoms())
    def test_entries_come_in_one_order(self, found: list[Entry], chance: random.Random) -> None:
        mixed = [*found, *found]
        chance.shuffle(mixed)
        assert ordered(mixed) == ordered(found)
        paths = [entry.path for entry in ordered(mixed)]
        assert paths == sorted({entry.path for entry in found})

    def test_of_two_states_of_a_file_the_later_one_counts(self) -> None:
        old, new = Entry("file", 9, 1000), Entry("file", 5, 2000)
        assert ordered([new, old]) == ordered([old, new]) == (new,)

    def test_folders_come_once_and_sorted(self) -> None:
        assert listing([], ["b", "a", "b"]).folders == ("a", "b")

    @pytest.mark.parametrize("seed", range(5))
    def test_a_mixing_wrapper_shows_what_its_inner_storage_shows(self, seed: int) -> None:
        inner = fresh_memory_storage()
        for number in range(20):
            inner.put(f"folder/{number % 4}/{number}", b"1")
            inner.put(f"folder/{number}", b"1")
        storage = faulty(f"seed={seed} mixed_listings", inner)
        views: tuple[Callable[[Storage], object], ...] = (
            lambda one: one.walk(""),
            lambda one: one.list("folder"),
        )
        for view in views:
            assert view(storage) == view(inner)
