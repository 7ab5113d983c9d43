"""Locks shared with others: a running Java Hudi, and a real ZooKeeper."""

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from lakewarden.engine.kernel.errors import Conflict
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import TableLock, open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.storage.open import open_storage
from lakewarden.engine.storage.port import Location
from lakewarden.java_home import java_home
from tests.golden_tables import GoldenTable
from tests.interop.judges import HOME, JavaJudge
from tests.interop.lines import Refused

PREFIX = "hoodie.write.lock."
IMPATIENT = {
    f"{PREFIX}wait_time_ms": "100",
    f"{PREFIX}client.num_retries": "1",
    f"{PREFIX}client.wait_time_ms_between_retry": "50",
    f"{PREFIX}num_retries": "1",
    f"{PREFIX}wait_time_ms_between_retry": "50",
}
FILE_LOCK = {
    f"{PREFIX}provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    **IMPATIENT,
}
DELETE = "DELETE FROM t"
PATIENT = {f"{PREFIX}client.num_retries": "200"}
TABLE = "cow_clean_requested"


class TestTheLockFileOfJava:
    def test_java_waits_for_ours(self, java: JavaJudge, golden_copy: GoldenTable) -> None:
        table = golden_copy(TABLE)
        with file_lock(table).hold() as held:
            with pytest.raises(Refused, match=r"(?i)lock"):
                java.ask("sql", table=str(table), statements=[DELETE], settings=FILE_LOCK)
            held.assert_held()
        java.ask("sql", table=str(table), statements=[DELETE], settings=FILE_LOCK)
        assert java.read(table) == []

    def test_both_take_turns(self, java: JavaJudge, golden_copy: GoldenTable) -> None:
        table = golden_copy(TABLE)
        settings = FILE_LOCK | PATIENT
        lock, turns = file_lock(table), 0
        with ThreadPoolExecutor(1) as threads:
            written = threads.submit(
                java.ask, "sql", table=str(table), statements=[DELETE], settings=settings
            )
            while not written.done():
                with lock.hold() as held:
                    held.assert_held()
                    turns += 1
                threading.Event().wait(0.1)
            written.result()
        assert turns > 1
        assert java.read(table) == []
        assert not (table / ".hoodie" / "lock").exists()


def file_lock(table: Path) -> TableLock:
    return open_lock(open_storage(Location(str(table))), Settings(), Ports())


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A ZooKeeper server out of the jars that come with the judge's Spark."""
    (jars,) = (HOME / "venv").glob("lib/python*/site-packages/pyspark/jars")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("zookeeper")
    java = Path(os.fspath(java_home())) / "bin" / "java"
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    # Started by port and folder it would listen on all interfaces.
    settings = folder / "zoo.cfg"
    settings.write_text(
        f"dataDir={folder}/data\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "tickTime=1000\nadmin.enableServer=false\nmaxClientCnxns=0\n"
    )
    command = [java, "-cp", f"{jars}/*", main]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen([*command, settings], stdout=log, stderr=log) as server,
    ):
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


def zookeeper_lock(hosts: str, key: str, *, wait_ms: int = 0) -> TableLock:
    given = {
        f"{PREFIX}provider": "ZookeeperBasedLockProvider",
        f"{PREFIX}zookeeper.url": hosts,
        f"{PREFIX}zookeeper.base_path": "/hudi",
        f"{PREFIX}zookeeper.lock_key": key,
        f"{PREFIX}zookeeper.session_timeout_ms": "6000",
        f"{PREFIX}wait_time_ms": str(wait_ms),
        f"{PREFIX}client.num_retries": "0",
    }
    return open_lock(fresh_memory_storage(), Settings.of(arguments=given), Ports())


@pytest.fixture
def client(zookeeper: str) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper)
    client.start(60)
    yield client
    client.stop()
    client.close()


class TestZooKeeper:
    def test_one_at_a_time(self, zookeeper: str, client: KazooClient) -> None:
        with zookeeper_lock(zookeeper, "one").hold() as held:
            held.assert_held()
            other = zookeeper_lock(zookeeper, "one").hold()
            with pytest.raises(Conflict, match="process") as caught, other:
                pass
            assert caught.value.code == "lock_held"
            held.assert_held()
            assert len(client.get_children("/hudi/one")) == 1
        assert client.get_children("/hudi/one") == []

    @pytest.mark.parametrize("prefix", ["_c_5b9a0f3e-lock-", "5b9a0f3e-lock-"])
    def test_a_node_of_curator_comes_first(
        self, zookeeper: str, client: KazooClient, prefix: str
    ) -> None:
        client.ensure_path("/hudi/two")
        theirs = client.create(f"/hudi/two/{prefix}", b"10.0.0.1", ephemeral=True, sequence=True)
        lock = zookeeper_lock(zookeeper, "two")
        with pytest.raises(Conflict, match=r"10\.0\.0\.1"), lock.hold():
            pass
        client.delete(theirs)
        with lock.hold() as held:
            held.assert_held()

    def test_java_waits_for_ours(
        self, java: JavaJudge, zookeeper: str, golden_copy: GoldenTable
    ) -> None:
        table = golden_copy(TABLE)
        settings = FILE_LOCK | {
            f"{PREFIX}provider": (
                "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
            ),
            f"{PREFIX}zookeeper.url": zookeeper,
            f"{PREFIX}zookeeper.base_path": "/hudi",
            f"{PREFIX}zookeeper.lock_key": "java",
        }
        with zookeeper_lock(zookeeper, "java").hold() as held:
            with pytest.raises(Refused, match=r"(?i)lock"):
                java.ask("sql", table=str(table), statements=[DELETE], settings=settings)
            held.assert_held()
        java.ask("sql", table=str(table), statements=[DELETE], settings=settings)
        assert java.read(table) == []

    def test_a_removed_node_is_a_lost_lock(self, zookeeper: str, client: KazooClient) -> None:
        with zookeeper_lock(zookeeper, "three").hold() as held:
            (node,) = client.get_children("/hudi/three")
            client.delete(f"/hudi/three/{node}")
            with pytest.raises(Conflict) as caught:
                held.assert_held()
        assert caught.value.code == "lock_lost"

    def test_threads_take_turns(self, zookeeper: str) -> None:
        inside: list[int] = []

        def work(number: int) -> None:
            with zookeeper_lock(zookeeper, "four", wait_ms=60_000).hold() as held:
                inside.append(number)
                held.assert_held()
                assert inside == [number]
                inside.remove(number)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(12)))
