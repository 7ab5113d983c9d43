"""What is kept for a process stays within its bytes; what was asked for last stays longest."""

from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.caches import ByteBounded


def test_values_asked_for_last_are_kept() -> None:
    kept: ByteBounded[str] = ByteBounded(20)
    kept.keep("a", "first", 10)
    kept.keep("b", "second", 10)
    assert kept.get("a") == "first"
    kept.keep("c", "third", 10)
    assert [kept.get(name) for name in "abc"] == ["first", None, "third"]


def test_a_value_larger_than_the_bound_drives_nothing_out() -> None:
    kept: ByteBounded[str] = ByteBounded(20)
    kept.keep("a", "first", 10)
    kept.keep("large", "other", 21)
    assert (kept.get("a"), kept.get("large")) == ("first", None)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 30))))
def test_the_bytes_stay_within_the_bound(steps: list[tuple[str, int]]) -> None:
    kept: ByteBounded[int] = ByteBounded(40)
    sizes: dict[str, int] = {}
    for name, size in steps:
        kept.keep(name, size, size)
        sizes[name] = size
        assert kept.get(name) == size
        assert kept.size_bytes <= 40
    assert kept.size_bytes == sum(sizes[name] for name in sizes if kept.get(name) is not None)
