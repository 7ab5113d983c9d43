"""The settings of a server's session: what its ports, users and catalog mean to Spark."""

import os
from collections.abc import Iterator

from lakewarden.sessions import jar_path
from lakewarden.sql_ext.server.wish import LOOPBACK, ServerWish

_CLASS_PATH = "spark.driver.extraClassPath"
_INTERCEPTORS = "spark.connect.grpc.interceptor.classes"
_DOORMAN = "io.lakewarden.spark.ConnectDoorman"
_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"


def server_settings(wish: ServerWish) -> dict[str, str]:
    """Everything that has to be there when the session is built; what is asked for goes first."""
    known = dict(_quiet())
    for part in (_local(wish), _catalog(wish), _thrift(wish), _connect(wish)):
        known.update(part)
    return known | dict(wish.settings) | dict(_limits(wish)) | dict(_classes(wish))


def _local(wish: ServerWish) -> Iterator[tuple[str, str]]:
    """Without a cluster no other machine has to reach the driver."""
    if "spark.master" not in wish.settings:
        yield "spark.driver.host", LOOPBACK
        yield "spark.driver.bindAddress", LOOPBACK


def _quiet() -> Iterator[tuple[str, str]]:
    yield "spark.ui.enabled", "false"
    yield "spark.ui.showConsoleProgress", "false"
    yield "spark.log.level", "ERROR"


def _catalog(wish: ServerWish) -> Iterator[tuple[str, str]]:
    """Names of tables are kept in the warehouse's folder, or else in memory only."""
    if wish.warehouse is None:
        yield "spark.sql.catalogImplementation", "in-memory"
        return
    yield "spark.sql.catalogImplementation", "hive"
    yield "spark.sql.warehouse.dir", wish.warehouse
    place = f"jdbc:derby:;databaseName={wish.warehouse}/.catalog;create=true"
    yield "spark.hadoop.javax.jdo.option.ConnectionURL", place
    yield "spark.driver.extraJavaOptions", f"-Dderby.system.home={wish.warehouse}"


def _thrift(wish: ServerWish) -> Iterator[tuple[str, str]]:
    if wish.thrift_port is None:
        return
    yield "spark.hadoop.hive.server2.thrift.bind.host", wish.host
    yield "spark.hadoop.hive.server2.thrift.port", str(wish.thrift_port)
    if wish.passwords:
        yield "spark.hadoop.hive.server2.authentication", "CUSTOM"


def _connect(wish: ServerWish) -> Iterator[tuple[str, str]]:
    if wish.connect_port is None:
        return
    yield "spark.plugins", _PLUGIN
    # Clients would show where in the server an error was thrown, below what it says.
    yield "spark.sql.connect.serverStacktrace.enabled", "false"
    yield "spark.connect.grpc.binding.address", wish.host
    yield "spark.connect.grpc.binding.port", str(wish.connect_port)
    if wish.token:
        yield "spark.connect.authenticate.token", wish.token


def _classes(wish: ServerWish) -> Iterator[tuple[str, str]]:
    """Our classes where the JVM itself finds them.

    Hive's threads look for whom to ask for passwords with the loader that a session before has left
    them, which knows of nothing that was added later.
    """
    given = wish.settings.get(_CLASS_PATH)
    yield _CLASS_PATH, os.pathsep.join(filter(None, (jar_path(), given)))


def _limits(wish: ServerWish) -> Iterator[tuple[str, str]]:
    if wish.allowed_roots:
        yield "lakewarden.allowed.roots", ",".join(wish.allowed_roots)
    if wish.is_read_only:
        yield "lakewarden.read.only", "true"
    is_limited = bool(wish.allowed_roots) or wish.is_read_only
    if is_limited and wish.connect_port is not None:
        given = wish.settings.get(_INTERCEPTORS)
        yield _INTERCEPTORS, ",".join(filter(None, (_DOORMAN, given)))
