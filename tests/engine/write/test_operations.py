"""Operations: what is asked for wrongly is refused by name, before anything is written."""

from collections.abc import Callable

import pytest

from lakewarden import InvalidRequest, Table
from tests.engine.services.service_table import COW, ServiceWorld, inserted, new_service_world, row

Act = Callable[[Table], object]
TWICE = [row("k0", 5), row("k0", 5)]


@pytest.mark.parametrize(
    ("act", "code"),
    [
        pytest.param(lambda table: table.merge(TWICE), "repeated_keys", id="repeated keys"),
        pytest.param(
            lambda table: table.merge(TWICE[:1], on_match="replace"), "bad_on_match", id="on_match"
        ),
        pytest.param(
            lambda table: table.merge(TWICE[:1], on_no_match="update"),
            "bad_on_no_match",
            id="on_no_match",
        ),
        pytest.param(
            lambda table: table.update_where([("ts", ">", 0)], {"id": "k9"}), "bad_update", id="key"
        ),
        pytest.param(
            lambda table: table.update_where([("ts", ">", 0)], {"nam": "x"}),
            "bad_update",
            id="unknown column",
        ),
        pytest.param(
            lambda table: table.update_where([("ts", ">", 0)], {}), "bad_update", id="no column"
        ),
        pytest.param(
            lambda table: table.update_where([("ts", ">", 0)], {"v": "much"}),
            "bad_value",
            id="another type",
        ),
        pytest.param(
            lambda table: table.delete_partitions("p=a"), "bad_partitions", id="one partition"
        ),
        pytest.param(
            lambda table: table.delete_partitions([1]),  # type: ignore[list-item]
            "bad_partitions",
            id="a number",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(act: Act, code: str) -> None:
    world = table_with_rows()
    before = world.storage.walk("")
    with pytest.raises(InvalidRequest) as raised:
        act(world.table(7))
    assert raised.value.code == code
    assert pending(world) == []
    assert {entry.path for entry in world.storage.walk("")} == {entry.path for entry in before}


def table_with_rows() -> ServiceWorld:
    return new_service_world(COW, inserted(4))


def pending(world: ServiceWorld) -> list[str]:
    return [one.requested for one in world.table(97).timeline().pending()]


def test_a_merge_may_update_only_or_insert_only() -> None:
    source = [row("k0", 5), row("new", 5)]
    for selection, keys in (
        ({"on_match": "ignore"}, {"k0": 1, "new": 5}),
        ({"on_no_match": "ignore"}, {"k0": 5}),
        ({}, {"k0": 5, "new": 5}),
        ({"on_match": "delete", "on_no_match": "ignore"}, {}),
    ):
        world = table_with_rows()
        world.clock.advance(1000)
        world.table(7).merge(source, **selection)
        found = {str(one["id"]): one["ts"] for one in world.rows()}
        assert {key: found[key] for key in ("k0", "new") if key in found} == keys


def test_a_merge_keeps_the_columns_that_its_source_lacks() -> None:
    world = table_with_rows()
    world.clock.advance(1000)
    lean = [{"id": f"k{n}", "p": "ab"[n % 2], "ts": 10 + n} for n in (3, 0)]
    world.table(7).merge(lean)
    found = {one["id"]: (one["ts"], one["name"]) for one in world.rows()}
    assert (found["k0"], found["k3"]) == ((10, "k0 at 1"), (13, "k3 at 1"))
