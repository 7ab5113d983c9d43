"""The settings of a server's session: what its ports, users and catalog mean to Spark."""

import os
from collections.abc import Iterator

from lakewarden.sessions import jar_path
from lakewarden.sql_ext.server.server_options import LOOPBACK, ServerOptions

_CLASS_PATH = "spark.driver.extraClassPath"
_INTERCEPTORS = "spark.connect.grpc.interceptor.classes"
_CONNECT_REQUESTS = "io.lakewarden.spark.ConnectRequests"
_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"


def server_settings(options: ServerOptions) -> dict[str, str]:
    """Everything that has to be there when the session is built; what is asked for goes first."""
    known = dict(_quiet())
    for part in (_local(options), _catalog(options), _thrift(options), _connect(options)):
        known.update(part)
    return known | dict(options.settings) | dict(_limits(options)) | dict(_classes(options))


def _local(options: ServerOptions) -> Iterator[tuple[str, str]]:
    """Without a cluster no other machine has to reach the driver."""
    if "spark.master" not in options.settings:
        yield "spark.driver.host", LOOPBACK
        yield "spark.driver.bindAddress", LOOPBACK


def _quiet() -> Iterator[tuple[str, str]]:
    yield "spark.ui.enabled", "false"
    yield "spark.ui.showConsoleProgress", "false"
    yield "spark.log.level", "ERROR"


def _catalog(options: ServerOptions) -> Iterator[tuple[str, str]]:
    """Names of tables are kept in the warehouse's folder, or else in memory only."""
    if options.warehouse is None:
        yield "spark.sql.catalogImplementation", "in-memory"
        return
    yield "spark.sql.catalogImplementation", "hive"
    yield "spark.sql.warehouse.dir", options.warehouse
    place = f"jdbc:derby:;databaseName={options.warehouse}/.catalog;create=true"
    yield "spark.hadoop.javax.jdo.option.ConnectionURL", place
    yield "spark.driver.extraJavaOptions", f"-Dderby.system.home={options.warehouse}"


def _thrift(options: ServerOptions) -> Iterator[tuple[str, str]]:
    if options.thrift_port is None:
        return
    yield "spark.hadoop.hive.server2.thrift.bind.host", options.host
    yield "spark.hadoop.hive.server2.thrift.port", str(options.thrift_port)
    if options.passwords:
        yield "spark.hadoop.hive.server2.authentication", "CUSTOM"


def _connect(options: ServerOptions) -> Iterator[tuple[str, str]]:
    if options.connect_port is None:
        return
    yield "spark.plugins", _PLUGIN
    # Clients would show where in the server an error was thrown, below what it says.
    yield "spark.sql.connect.serverStacktrace.enabled", "false"
    yield "spark.connect.grpc.binding.address", options.host
    yield "spark.connect.grpc.binding.port", str(options.connect_port)
    if options.token:
        yield "spark.connect.authenticate.token", options.token


def _classes(options: ServerOptions) -> Iterator[tuple[str, str]]:
    """Our classes where the JVM itself finds them.

    Hive's threads look for whom to ask for passwords with the loader that a session before has left
    them, which knows of nothing that was added later.
    """
    given = options.settings.get(_CLASS_PATH)
    yield _CLASS_PATH, os.pathsep.join(filter(None, (jar_path(), given)))


def _limits(options: ServerOptions) -> Iterator[tuple[str, str]]:
    if options.allowed_roots:
        yield "lakewarden.allowed.roots", ",".join(options.allowed_roots)
    if options.is_read_only:
        yield "lakewarden.read.only", "true"
    is_limited = bool(options.allowed_roots) or options.is_read_only
    if is_limited and options.connect_port is not None:
        given = options.settings.get(_INTERCEPTORS)
        yield _INTERCEPTORS, ",".join(filter(None, (_CONNECT_REQUESTS, given)))
