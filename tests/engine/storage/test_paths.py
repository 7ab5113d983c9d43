"""Paths: whatever is let through stays inside."""

import os
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.paths import checked_file, joined, prefix_of

names = st.one_of(st.sampled_from(["", ".", "..", "...", "a", "~", "\0"]), st.text(max_size=4))


@given(st.lists(names, max_size=5).map("/".join))
def test_an_accepted_path_stays_below_the_root(path: str) -> None:
    with suppress(InvalidRequest):
        accepted = checked_file(path)
        assert os.path.normpath(f"/table/{accepted}") == f"/table/{path}"
        assert b"\0" not in os.fsencode(accepted)


@given(st.lists(st.text("ab.-é日", min_size=1, max_size=4), min_size=1, max_size=5))
def test_plain_names_are_accepted(parts: list[str]) -> None:
    path = "/".join(f"x{part}" for part in parts)
    assert checked_file(path) == path


def test_joining_with_the_root_changes_nothing() -> None:
    assert joined("", "a/b") == "a/b"
    assert joined("a/b", "") == "a/b"
    assert joined("a", "b") == "a/b"
    assert prefix_of("") == ""
    assert prefix_of("a") == "a/"
