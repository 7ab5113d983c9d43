"""Layouts: file names to instants and back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewarden.engine.kernel.clock import UTC
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.storage.port import Entry
from lakewarden.engine.timeline.instants.instant import Action, Instant, Layout, State, layout_of

V6 = layout_of({"hoodie.timeline.layout.version": "1", "hoodie.table.timeline.timezone": "UTC"})
V9 = layout_of({"hoodie.timeline.layout.version": "2", "hoodie.table.timeline.timezone": "UTC"})
T, C = "20260307222557123", "20260307222600000"
C_MS = 1772922360000


def parsed(layout: Layout, name: str) -> Instant | None:
    return layout.parse(Entry(f"{layout.folder}/{name}", 0, C_MS))


PENDING = [
    (f"{T}.{action.value}.{state.name.lower()}", Instant(T, action, state))
    for action in Action
    for state in (State.REQUESTED, State.INFLIGHT)
    if (action, state) != (Action.COMMIT, State.INFLIGHT)
] + [(f"{T}.inflight", Instant(T, Action.COMMIT, State.INFLIGHT))]

COMPLETED = sorted({action.completed_as.value for action in Action})


@pytest.mark.parametrize(("name", "instant"), PENDING)
@pytest.mark.parametrize("layout", [V6, V9], ids=["layout 1", "layout 2"])
def test_a_pending_instant_has_a_name(layout: Layout, name: str, instant: Instant) -> None:
    assert parsed(layout, name) == instant
    # To layout 1 a clustering is one more replace commit.
    is_unnamed = layout is V6 and instant.action is Action.CLUSTERING
    wanted = name.replace("clustering", "replacecommit") if is_unnamed else name
    assert layout.file_name(instant) == wanted


@pytest.mark.parametrize("word", COMPLETED)
def test_a_completed_instant_of_layout_2_has_both_times_in_its_name(word: str) -> None:
    name, instant = f"{T}_{C}.{word}", Instant(T, Action(word), State.COMPLETED, C)
    assert parsed(V9, name) == instant
    assert V9.file_name(instant) == name


@pytest.mark.parametrize("word", COMPLETED)
def test_a_completed_instant_of_layout_1_completed_when_its_file_was_written(word: str) -> None:
    name, instant = f"{T}.{word}", Instant(T, Action(word), State.COMPLETED, C)
    assert parsed(V6, name) == instant
    assert V6.file_name(instant) == name


def test_a_service_completes_under_the_name_of_a_write() -> None:
    instant = Instant(T, Action.COMPACTION, State.COMPLETED, C)
    assert V9.path(instant) == f".hoodie/timeline/{T}_{C}.commit"


def test_an_instant_from_before_an_upgrade_keeps_its_old_name() -> None:
    assert parsed(V9, f"{T}.commit") == Instant(T, Action.COMMIT, State.COMPLETED, C)


def test_a_plain_commit_may_be_inflight_with_its_action() -> None:
    assert parsed(V9, f"{T}.commit.inflight") == Instant(T, Action.COMMIT, State.INFLIGHT)


FOREIGN = [
    "x.txt",
    f"{T}.claim",
    f"{T}.claim.requested",
    f".tmp-{T}.commit",
    f".{T}_{C}.commit.crc",
    f"{T}_{C}.commit.crc",
    f"{T}_{C}.commit.inflight",
    f"{T}_{C}.inflight",
    f"{T}.commit.requested.tmp",
    f"{T}.inflight.requested",
    f"{T}.commit.completed",
    f"{T}",
    f"{T}.",
    f"{T}_.commit",
    "hoodie.properties",
    "hoodie.properties.backup",
    "history",
    "²026.commit",
]


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("layout", [V6, V9], ids=["layout 1", "layout 2"])
def test_a_foreign_name_is_ignored(layout: Layout, name: str) -> None:
    assert parsed(layout, name) is None


def test_layout_1_knows_no_completion_time_in_names() -> None:
    assert parsed(V6, f"{T}_{C}.commit") is None


@settings(deadline=None)
@given(st.text())
def test_any_name_is_an_instant_or_ignored(name: str) -> None:
    assert isinstance(parsed(V9, name), Instant | None)


@pytest.mark.parametrize(
    ("properties", "version", "folder", "history"),
    [
        ({"hoodie.table.version": "6"}, 1, ".hoodie", ".hoodie/archived"),
        ({"hoodie.table.version": "9"}, 2, ".hoodie/timeline", ".hoodie/timeline/history"),
        ({"hoodie.archivelog.folder": "history"}, 1, ".hoodie", ".hoodie/history"),
        ({"hoodie.archivelog.folder": ""}, 1, ".hoodie", ".hoodie"),
        (
            {
                "hoodie.timeline.layout.version": "2",
                "hoodie.timeline.path": "t",
                "hoodie.timeline.history.path": "h",
                "hoodie.archivelog.folder": "archived",
            },
            2,
            ".hoodie/t",
            ".hoodie/t/h",
        ),
    ],
)
def test_properties_say_where_the_timeline_lies(
    properties: dict[str, str], version: int, folder: str, history: str
) -> None:
    layout = layout_of(properties, local_zone=UTC)
    assert layout == Layout(version, folder, history, UTC)


def test_an_unknown_layout_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest) as raised:
        layout_of({"hoodie.timeline.layout.version": "3"})
    assert raised.value.code == "unsupported_timeline_layout"
