"""The judges, started once per session, and the shapes of tables that they are shown."""

from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path

import pytest

from tests.interop.judges import JavaJudge, RustReader
from tests.writing.shapes import all_shapes, pairwise_shapes


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-shapes",
        action="store_true",
        help="write tables of every shape, not only of those in which every two choices meet",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Judge the judge first, in a JVM that nobody has used yet."""
    items.sort(key=lambda item: item.path.name != "test_judge.py")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes a `shape` runs for each."""
    if "shape" in metafunc.fixturenames:
        every = metafunc.config.getoption("--all-shapes")
        metafunc.parametrize("shape", all_shapes() if every else pairwise_shapes(), ids=str)


@pytest.fixture
def tmp_path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder whose path no other test has.

    Java keeps blocks of HFiles by their path, also when another table has taken it, and pytest
    gives the folder of a test that has passed to the next one with the same first letters.
    """
    folder = tmp_path / sha1(request.node.nodeid.encode()).hexdigest()[:8]
    folder.mkdir()
    return folder


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
