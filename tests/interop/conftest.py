"""The judges, started once per session."""

from collections.abc import Iterator

import pytest

from tests.interop.judges import JavaJudge, RustReader


@pytest.fixture(scope="session")
def java() -> Iterator[JavaJudge]:
    """Java Hudi on its own Spark."""
    with JavaJudge() as judge:
        yield judge


@pytest.fixture(scope="session")
def rust() -> Iterator[RustReader]:
    """The Rust implementation."""
    with RustReader() as reader:
        yield reader
