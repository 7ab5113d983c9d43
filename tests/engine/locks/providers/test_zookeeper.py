"""The ZooKeeper lock without a ZooKeeper: what is missing is named. With one: see tests/interop."""

import subprocess
import sys

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest, Unavailable
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.locks.table_lock import open_lock
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import fresh_memory_storage

PREFIX = "hoodie.write.lock."
GIVEN = {
    f"{PREFIX}provider": "ZookeeperBasedLockProvider",
    f"{PREFIX}zookeeper.url": "127.0.0.1:1",
    f"{PREFIX}zookeeper.base_path": "/hudi",
    f"{PREFIX}zookeeper.lock_key": "table",
    f"{PREFIX}zookeeper.connection_timeout_ms": "10",
    f"{PREFIX}wait_time_ms": "0",
    f"{PREFIX}client.num_retries": "0",
}
WITHOUT_KAZOO = """
import sys
sys.modules["kazoo"] = None
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.locks.providers.zookeeper import Ensemble, ZooKeeperLock
from lakewarden.engine.run.ports import Ports
try:
    ZooKeeperLock(Ensemble("127.0.0.1:1", 1, 1), "/lock", Ports())
except InvalidRequest as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["url", "base_path", "lock_key"])
def test_what_is_not_set_is_named(name: str) -> None:
    key = f"{PREFIX}zookeeper.{name}"
    given = {other: value for other, value in GIVEN.items() if other != key}
    with pytest.raises(InvalidRequest, match=key) as caught:
        open_lock(fresh_memory_storage(), Settings.of(arguments=given), Ports())
    assert caught.value.code == "missing_setting"


def test_servers_out_of_reach_are_named() -> None:
    lock = open_lock(fresh_memory_storage(), Settings.of(arguments=GIVEN), Ports())
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1") as caught, lock.hold():
        pass
    assert caught.value.code == "lock_unavailable"


def test_a_missing_package_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_KAZOO], capture_output=True, text=True, check=True
    )
    assert "pip install lakewarden[zookeeper]" in done.stdout
