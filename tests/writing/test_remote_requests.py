"""Requests of ten operations to an object store, and how many of them wait for each other."""

from collections.abc import Iterator, Mapping

import pytest

from bench.remote_requests import OPERATIONS, Chain, counted, distant_s3

# Requests, and the longest chain of them.
MOST = {
    "open": (1, 1),
    "schema": (3, 2),
    "read": (15, 5),
    "lookup": (21, 8),
    "upsert": (60, 30),
    "insert": (59, 33),
    "delete": (63, 32),
    "compaction": (106, 69),
    "clean": (24, 17),
    "show_plans": (3, 2),
}


@pytest.fixture(scope="module")
def chains() -> Iterator[Mapping[str, Chain]]:
    with distant_s3() as s3:
        yield counted(s3)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_makes_no_more_requests_than_it_did(
    chains: Mapping[str, Chain], operation: str
) -> None:
    requests = chains[operation].requests
    assert len(requests) <= MOST[operation][0], "\n".join(requests)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_more_requests_wait_for_each_other_than_did(
    chains: Mapping[str, Chain], operation: str
) -> None:
    assert chains[operation].depth <= MOST[operation][1]
