"""What the archive keeps of an active instant."""

import pytest

from lakewarden.engine.kernel.clock import UTC
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.timeline.instants.instant import layout_of
from lakewarden.engine.timeline.removals import archived_form
from lakewarden.engine.timeline.timeline import load_active

LAYOUT = layout_of({"hoodie.table.version": "9"}, local_zone=UTC)


@pytest.mark.parametrize(
    ("contents", "plan"),
    [
        ({"1.commit.requested": b"", "1.inflight": b"profile", "1_2.commit": b"m"}, None),
        (
            {"1.compaction.requested": b"plan", "1.compaction.inflight": b"", "1_2.commit": b"m"},
            b"plan",
        ),
        ({"1.logcompaction.requested": b"plan", "1_2.deltacommit": b"m"}, b"plan"),
        ({"1.clean.requested": b"plan", "1.clean.inflight": b"", "1_2.clean": b"m"}, b"plan"),
        (
            {
                "1.clustering.requested": b"plan",
                "1.clustering.inflight": b"",
                "1_2.replacecommit": b"m",
            },
            b"plan",
        ),
        (
            {
                "1.replacecommit.requested": b"nulls",
                "1.replacecommit.inflight": b"profile",
                "1_2.replacecommit": b"m",
            },
            b"profile",
        ),
        ({"1.rollback.requested": b"plan", "1.rollback.inflight": b"", "1_2.rollback": b"m"}, None),
        ({"1_2.commit": b"m"}, None),
    ],
)
def test_services_keep_their_plan_and_writes_do_not(
    contents: dict[str, bytes], plan: bytes | None
) -> None:
    storage = fresh_memory_storage()
    for name, content in contents.items():
        storage.put(f"{LAYOUT.folder}/{name}", content)
    active = load_active(storage, LAYOUT)
    form = archived_form(active, active.instants[0])
    assert (form.instant, form.metadata, form.plan) == (active.instants[0], b"m", plan)


def test_an_empty_completed_file_keeps_nothing() -> None:
    storage = fresh_memory_storage()
    storage.put(f"{LAYOUT.folder}/1_2.commit", b"")
    active = load_active(storage, LAYOUT)
    assert archived_form(active, active.instants[0]).metadata is None


def test_a_completed_file_is_kept_that_was_empty_at_an_earlier_look() -> None:
    storage = fresh_memory_storage()
    storage.put(f"{LAYOUT.folder}/1_2.commit", b"")
    before = load_active(storage, LAYOUT)
    storage.put(f"{LAYOUT.folder}/1_2.commit", b"whole by now")
    active = before.again()
    assert archived_form(active, active.instants[0]).metadata == b"whole by now"
