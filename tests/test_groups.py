"""Workers that share the tests keep groups together; else each would start a JVM of its own."""

import pytest


@pytest.mark.xdist_group("tidy")
def test_a_group_is_known_to_whoever_deals_out_tests(request: pytest.FixtureRequest) -> None:
    is_dealt_out_by_group = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@tidy") == is_dealt_out_by_group
