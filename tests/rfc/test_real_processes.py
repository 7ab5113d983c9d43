"""The RFC's rows with real processes on a local disk: killed, paused for too long, and continued.

Each row is played by one service; with LAKEWARDEN_KILLS by all of them.
"""

import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.heartbeats import read_heartbeats
from lakewarden.engine.timeline.instants.state import LedgerEnd
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.recovery.failed_writes import recover_failed_instants
from lakewarden.engine.transaction.state.context import Context
from tests.engine.services.service_table import contents
from tests.rfc.actors import Actor, Part, Stage, until
from tests.rfc.plans import IS_SIMULATION, KINDS, LAZY, Kind
from tests.writing.model import contents_of
from tests.writing.shapes import carry_out

# As short as can be, and long enough for a busy machine.
HEARTBEATS = {
    "hoodie__client__heartbeat__interval_in_ms": "1500",
    "hoodie__client__heartbeat__tolerable__misses": "2",
    # Whoever has paused with the lock in hand is waited for no longer than that.
    "hoodie__write__lock__wait_time_ms": "5000",
}
AT_ONCE = {"lakewarden__table_service_rollback_delay": "0"}
_rows = count()


def played_by(*, cancellable: bool) -> pytest.MarkDecorator:
    """The services that play a row: each time another one, or all of them."""
    kinds = KINDS if IS_SIMULATION else (KINDS[next(_rows) % len(KINDS)],)
    plans = [(kind, cancellable) for kind in kinds]
    return pytest.mark.parametrize("play", plans, ids=lambda p: p[0].name, indirect=True)


class Play:
    """A table on disk, a plan on it, and the processes that deal with it."""

    def __init__(self, stage: Stage, folder: Path, kind: Kind, *, cancellable: bool) -> None:
        self._stage = stage
        self._place = str(folder / "table")
        self._kind = kind
        kind.shape.create(self._place)
        for write in kind.history:
            carry_out(Table(self._place), write)
        self.context = self._context()
        done = schedule(self.context, kind.service, PlanRequest(cancellable=cancellable))
        assert isinstance(done, Scheduled)
        self.plan = done.instant

    def _context(self, **more: str) -> Context:
        given = {**LAZY, **HEARTBEATS, **self._kind.settings, **more}
        settings = Settings.of(arguments={key.replace("__", "."): v for key, v in given.items()})
        storage, ports = open_storage(Location(self._place)), Ports()
        return Context(storage, open_lock(storage, settings, ports), ports, settings)

    def enters(self, act: str, *, stops: bool = False, **more: str) -> Actor:
        part = Part(
            act=act,
            table=self._place,
            kind=self._kind.name,
            plan=self.plan,
            settings={**LAZY, **HEARTBEATS, **more},
            answer=self._stage.answer_path(),
            stops=stops,
        )
        return self._stage.enters(part)

    def executes(self, *, stops: bool = False) -> Actor:
        return self.enters("execute", stops=stops)

    def stopped(self) -> Actor:
        """One who has stopped in the middle of carrying the plan out."""
        return self.executes(stops=True).until_stopped()

    def killed(self) -> None:
        """The plan is inflight, by one who was killed in the middle of it."""
        self.stopped().dies()

    def answers_until(self, act: str, code: str, **more: str) -> str:
        """Somebody tries again and again as long as the answer is that one; the first other one."""
        while (answer := self.enters(act, **more).answers()) == code:
            pass
        return answer

    @property
    def end(self) -> LedgerEnd:
        return read_ledger(self.context.storage, self.plan).ends_in

    @property
    def is_pending(self) -> bool:
        return self.plan in {i.requested for i in Table(self._place).timeline().pending()}

    @property
    def is_completed(self) -> bool:
        return self.plan in {i.requested for i in Table(self._place).timeline().completed()}

    def assert_sound(self) -> None:
        """The rows are what was written, and no file is left that belongs to nothing."""
        recover_failed_instants(self.context)
        table = Table(self._place)
        expected = contents(self._kind.shape, *self._kind.history)
        assert contents_of(table.read_arrow()) == expected
        assert contents_of(table.read_arrow(use_metadata=False)) == expected
        completed = {instant.requested for instant in table.timeline().completed()}
        for files in StorageListing(self.context.storage).files().values():
            assert {file.instant for file in files} <= completed

    def assert_gone(self) -> None:
        assert self.end is LedgerEnd.CANCELLED
        self.assert_sound()
        assert not self.is_pending


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("answers")) as stage:
        yield stage


@pytest.fixture
def play(request: pytest.FixtureRequest, stage: Stage, tmp_path: Path) -> Play:
    kind, cancellable = request.param
    return Play(stage, tmp_path, kind, cancellable=cancellable)


HELD = "plan_held"


@played_by(cancellable=False)
def test_immutable_a(play: Play) -> None:
    actors = [play.executes() for _ in range(3)]
    answers = sorted(actor.answers() for actor in actors)
    assert answers.count("completed") == 1
    assert set(answers) <= {"completed", "found completed", HELD}
    play.assert_sound()


@played_by(cancellable=False)
def test_immutable_b_when_x_pauses(play: Play) -> None:
    x = play.stopped()
    assert play.executes().answers() == HELD
    assert play.answers_until("execute", HELD) == "completed"
    assert x.goes_on().answers() == "superseded"
    play.assert_sound()


@played_by(cancellable=False)
def test_immutable_b_when_x_pauses_for_a_moment(play: Play) -> None:
    x = play.stopped()
    assert play.executes().answers() == HELD
    assert x.goes_on().answers() == "completed"
    assert play.executes().answers() == "found completed"
    play.assert_sound()


@played_by(cancellable=False)
def test_immutable_b_when_x_is_killed(play: Play) -> None:
    play.killed()
    assert play.executes().answers() == "completed"
    play.assert_sound()


@played_by(cancellable=False)
def test_immutable_c(play: Play) -> None:
    play.killed()
    actors = [play.executes(), play.executes()]
    answers = sorted(actor.answers() for actor in actors)
    assert answers.count("completed") == 1
    assert set(answers) <= {"completed", "found completed", HELD}
    play.assert_sound()


@played_by(cancellable=True)
def test_mutable_a(play: Play) -> None:
    actors = [play.executes() for _ in range(3)]
    answers = sorted(actor.answers() for actor in actors)
    assert answers.count("completed") == 1
    assert set(answers) <= {"completed", "found completed", HELD}
    play.assert_sound()


@played_by(cancellable=True)
def test_mutable_b_when_x_pauses(play: Play) -> None:
    x = play.stopped()
    assert play.executes().answers() == HELD
    assert play.answers_until("execute", HELD) == "plan_not_executable"
    assert x.goes_on().answers() == "completed"
    assert play.executes().answers() == "found completed"
    play.assert_sound()


@played_by(cancellable=True)
def test_mutable_c_and_b_when_x_is_killed(play: Play) -> None:
    play.killed()
    actors = [play.executes(), play.executes()]
    assert [actor.answers() for actor in actors] == ["plan_not_executable"] * 2
    assert play.enters("clean").answers() == "cleaned"
    play.assert_gone()


@played_by(cancellable=True)
def test_mutable_d(play: Play) -> None:
    x = play.stopped()
    assert play.enters("clean", **AT_ONCE).answers() == "cleaned"
    assert play.is_pending
    assert x.goes_on().answers() == "completed"
    play.assert_sound()


@played_by(cancellable=True)
def test_mutable_d_when_x_pauses(play: Play) -> None:
    x = play.stopped()
    assert play.answers_until("execute", HELD) == "plan_not_executable"
    assert play.enters("clean").answers() == "cleaned"
    assert play.end is LedgerEnd.CANCELLED
    assert x.goes_on().answers() == "cancelled"
    play.assert_gone()


@played_by(cancellable=True)
def test_mutable_e(play: Play) -> None:
    assert play.enters("clean").answers() == "cleaned"
    assert play.is_pending
    assert play.enters("clean", **AT_ONCE).answers() == "cleaned"
    assert play.executes().answers() == "unknown_plan"
    play.assert_gone()


@played_by(cancellable=True)
def test_a_cancel_is_seen_by_who_carries_the_plan_out(play: Play) -> None:
    x = play.stopped()
    canceller = play.enters("cancel")
    until(lambda: play.end is LedgerEnd.CANCELLED)
    assert x.goes_on().answers() == "cancelled"
    assert canceller.answers() == "cancelled"
    play.assert_gone()


SIGNALS = [(signal.SIGTERM, "died"), (signal.SIGINT, "interrupted")]


@pytest.mark.parametrize(("number", "answer"), SIGNALS)
@played_by(cancellable=False)
def test_who_is_asked_to_end_leaves_an_immutable_plan_free_for_all(
    play: Play, number: signal.Signals, answer: str
) -> None:
    assert play.stopped().gets(number).goes_on().answers() == answer
    # Java would have to wait for the heartbeat that it sees, if it were there still.
    assert read_heartbeats(play.context.storage, play.plan) == ()
    assert play.context.storage.list(".hoodie/.heartbeat").files == ()
    assert play.executes().answers() == "completed"
    play.assert_sound()


@pytest.mark.parametrize(("number", "answer"), SIGNALS)
@played_by(cancellable=True)
def test_who_is_asked_to_end_takes_a_cancellable_plan_along(
    play: Play, number: signal.Signals, answer: str
) -> None:
    assert play.stopped().gets(number).goes_on().answers() == answer
    assert not play.is_pending
    play.assert_gone()
