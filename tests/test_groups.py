"""Workers that share the tests keep groups together; else each would start a JVM of its own."""

import pytest

from tests.conftest import SHARED


@pytest.mark.xdist_group("tidy")
def test_a_group_is_known_to_whoever_deals_out_tests(request: pytest.FixtureRequest) -> None:
    is_dealt_out_by_group = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@tidy") == is_dealt_out_by_group


@pytest.fixture(scope="module")
def costly() -> int:
    return 1


@pytest.mark.usefixtures("costly")
def test_tests_that_share_a_fixture_of_their_module_are_a_group(
    request: pytest.FixtureRequest,
) -> None:
    is_dealt_out_by_group = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@tests/test_groups") == is_dealt_out_by_group


def test_no_worker_starts_what_another_one_has(request: pytest.FixtureRequest) -> None:
    sharing = [
        one
        for one in request.session.items
        if isinstance(one, pytest.Function) and not SHARED.keys().isdisjoint(one.fixturenames)
    ]
    groups = [mark.args[0] for one in sharing for mark in one.iter_markers("xdist_group")]
    assert len(groups) == len(sharing)
    assert set(groups) <= set(SHARED.values())
