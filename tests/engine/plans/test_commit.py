"""The commit: what was written is there for good, or not at all."""

from tests.engine.plans.world import World


def test_a_write_becomes_visible_with_its_commit() -> None:
    world = World()
    receipt = world.writer().write("f1", "f2")
    assert world.visible() == world.committed_files() == world.data_files()
    assert len(world.visible()) == 2
    assert receipt.is_published
    assert receipt.completion_time > receipt.instant


def test_after_a_commit_no_marker_and_no_sign_of_life_is_left() -> None:
    world = World()
    instant = world.writer().write("f1").instant
    folder = ".hoodie/timeline"
    left = [path for path in world.traces(instant) if not path.startswith((folder, "p=a/"))]
    assert left == []
