"""A CALL that runs is cancelled from elsewhere: it ends soon, and leaves nothing half done."""

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pyarrow as pa
import pytest
from impala.dbapi import connect
from impala.error import Error
from impala.hiveserver2 import HiveServer2Cursor
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession as RemoteSession

from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import TableLock, open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.services.inspection.state.plans import PendingPlan
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.table import Table
from lakewarden.table_service_handle import Plan
from tests.process_gauges import java_below, reading
from tests.rfc.actors import until
from tests.sql_examples.clients import Refused, ThriftClient, remote_session
from tests.sql_server import Ports as Server

pytestmark = [pytest.mark.xdist_group("served"), pytest.mark.timeout(600)]

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("qty", pa.int64())]
)
# So many that it takes seconds to compact them.
GROUPS = 150
TAG = "nightly"
# As far as the machine tells the names of threads in which statements of JDBC clients run.
STATEMENTS_THREAD = "HiveServer2-Bac"
ON_WORKERS = "SET lakewarden.services.spark_bytes_min=0"


def rows(ts: int) -> pa.Table:
    numbers = range(GROUPS)
    columns = [
        [str(n) for n in numbers],
        [f"city {n}" for n in numbers],
        [ts] * GROUPS,
        [ts] * GROUPS,
    ]
    return pa.table(columns, schema=SCHEMA)


class Compaction:
    """A table with a plan that a client carries out, and others call off."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.table = Table.create(
            path, SCHEMA, key=["id"], partition=["city"], ordering=["ts"], type="mor"
        )
        self.table.upsert(rows(1))
        self.table.upsert(rows(2))
        self.execution = f"CALL run_compaction(path => '{path}', op => 'execute')"

    def plan(self, *, cancellable: bool = False) -> str:
        """The only plan."""
        for old in self.table.plans():
            self.table.cancel(old.instant, "another one is made", force=True)
        planned = self.table.compaction.schedule(cancellable)
        assert isinstance(planned, Plan)
        return planned.instant

    @property
    def pending(self) -> PendingPlan | None:
        found = self.table.plans()
        return found[0] if found else None

    def is_running(self) -> bool:
        return self.pending is not None and self.pending.state is InstantState.INFLIGHT_HELD

    def until_running(self) -> None:
        until(self.is_running)

    def until_let_go(self) -> None:
        until(lambda: not self.is_running())

    def cancellation(self) -> str:
        """What cancels the plan; an attempt that ends cleans up first."""
        assert self.pending is not None
        instant = f"instant => '{self.pending.instant}', force => true, wait_seconds => 60"
        return f"CALL cancel_plan(path => '{self.path}', {instant})"

    def lock(self) -> TableLock:
        storage = open_storage(Location(self.path))
        return open_lock(storage, Settings.of(), Ports())

    def assert_as_it_was(self) -> None:
        """Nothing was compacted, and no file is left of the attempt."""
        assert self.pending is None
        found = self.table.read_arrow(columns=SCHEMA.names).sort_by("id")
        assert found.equals(rows(2).sort_by("id"))
        completed = {instant.requested for instant in self.table.timeline().completed()}
        listing = StorageListing(open_storage(Location(self.path))).files()
        assert {file.instant for files in listing.values() for file in files} <= completed


@pytest.fixture(scope="module")
def compaction(tmp_path_factory: pytest.TempPathFactory) -> Compaction:
    return Compaction(str(tmp_path_factory.mktemp("lake") / "orders"))


@contextmanager
def cursor(server: Server) -> Iterator[HiveServer2Cursor]:
    """A statement of a JDBC client's, which can be called off."""
    with connect(host="127.0.0.1", port=server.thrift, auth_mechanism="PLAIN") as connection:
        yield connection.cursor()


def asked(client: Callable[[], object]) -> Future[object]:
    """What comes of a statement that others run meanwhile."""
    pool = ThreadPoolExecutor(1)
    found = pool.submit(client)
    pool.shutdown(wait=False)
    return found


@pytest.mark.parametrize("settings", ["SET a=b", ON_WORKERS], ids=["threads", "workers"])
def test_a_jdbc_client_cancels_its_statement(
    server: Server, compaction: Compaction, settings: str
) -> None:
    plan = compaction.plan()
    with cursor(server) as statement, ThriftClient(server.thrift) as other:
        statement.execute(settings)
        statement.execute_async(compaction.execution)
        compaction.until_running()
        statement.cancel_operation(reset_state=False)
        assert statement.status() == "CANCELED_STATE"
        with pytest.raises(Error, match="CANCELED"):
            statement.fetchall()
        compaction.until_let_go()
        # It waits for whoever carries it out next.
        assert compaction.pending is not None
        assert compaction.pending.instant == plan
        statement.execute("SELECT 1")
        assert statement.fetchall() == [(1,)]
        other.ask(compaction.cancellation())
    compaction.assert_as_it_was()


def test_a_jdbc_client_leaves_in_the_middle(server: Server, compaction: Compaction) -> None:
    compaction.plan(cancellable=True)
    with cursor(server) as statement:
        statement.execute_async(compaction.execution)
        compaction.until_running()
        statement.close_operation()
    # A plan that may be cancelled goes with the only attempt at it.
    until(lambda: compaction.pending is None)
    compaction.assert_as_it_was()


def interrupt_all(session: RemoteSession) -> list[str]:
    return session.interruptAll()


def interrupt_tag(session: RemoteSession) -> list[str]:
    return session.interruptTag(TAG)


@pytest.mark.parametrize("interrupt", [interrupt_all, interrupt_tag])
def test_a_connect_client_interrupts_its_session(
    server: Server, compaction: Compaction, interrupt: Callable[[RemoteSession], list[str]]
) -> None:
    compaction.plan(cancellable=True)
    with remote_session(server.connect) as session:

        def execute() -> object:
            session.addTag(TAG)
            return session.sql(compaction.execution).collect()

        answer = asked(execute)
        compaction.until_running()
        assert len(interrupt(session)) == 1
        with pytest.raises(PySparkException, match="OPERATION_CANCELED"):
            answer.result()
        until(lambda: compaction.pending is None)
        assert session.sql("SELECT 1 AS one").collect()[0].one == 1
    compaction.assert_as_it_was()


@contextmanager
def heeding_ctrl_c() -> Iterator[None]:
    """A process that was started in the background may have been told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_in_a_connect_client_interrupts_its_operation(
    server: Server, compaction: Compaction
) -> None:
    compaction.plan(cancellable=True)

    def press() -> None:
        compaction.until_running()
        signal.raise_signal(signal.SIGINT)

    with remote_session(server.connect) as session, heeding_ctrl_c():
        pressed = asked(press)
        with pytest.raises(KeyboardInterrupt):
            session.sql(compaction.execution).collect()
        pressed.result()
        until(lambda: compaction.pending is None)
    compaction.assert_as_it_was()


def test_a_plan_is_cancelled_from_another_connection(
    server: Server, compaction: Compaction
) -> None:
    with remote_session(server.connect) as session, ThriftClient(server.thrift) as thrift:

        def by_connect(statement: str) -> object:
            return session.sql(statement).collect()

        for run, cancel in ((by_connect, thrift.ask), (thrift.ask, by_connect)):
            compaction.plan()
            answer = asked(lambda run=run: run(compaction.execution))
            compaction.until_running()
            cancel(compaction.cancellation())
            with pytest.raises((Refused, PySparkException), match="LAKEWARDEN_CANCELLED"):
                answer.result()
            compaction.assert_as_it_was()


def test_whoever_waits_for_the_lock_can_be_called_off(
    server: Server, compaction: Compaction
) -> None:
    with compaction.lock().hold(), cursor(server) as statement:
        statement.execute_async(
            f"CALL run_compaction(path => '{compaction.path}', op => 'schedule')"
        )
        until(lambda: statement.status() == "RUNNING_STATE")
        statement.cancel_operation(reset_state=False)
        java = java_below(server.pid)
        # One of them looks after sessions that nobody uses any more.
        until(lambda: reading(java).threads[STATEMENTS_THREAD] <= 1)
    assert compaction.pending is None
