"""Places for tables that are written."""

from collections.abc import Iterator

import pytest

from lakewarden.engine.storage.memory import fresh_memory_storage


@pytest.fixture
def memory_path() -> Iterator[str]:
    """The address of an empty place in this process, kept alive for the test."""
    storage = fresh_memory_storage()
    yield storage.location.uri
    del storage
