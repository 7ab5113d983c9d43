"""Compaction: what has changed is all that looking at everything would find, in any history."""

import pytest

from tests.incremental.compaction_cases import CASE
from tests.incremental.histories import CHUNKS, run_histories


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_look_at_what_has_changed_finds_all_there_is(chunk: int) -> None:
    for history in run_histories(CASE, chunk, count=100):
        assert history.table.uncompacted() == frozenset()
