"""Serving: a session in this process that others reach, from its start to its end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING

import pyspark
from py4j.java_gateway import JavaObject, JVMView

from lakewarden.engine.spark.workers.older_sparks import OLDEST_TO_SERVE, check_spark
from lakewarden.sessions import session
from lakewarden.sql_ext.server.server_options import ServerOptions
from lakewarden.sql_ext.server.session_settings import server_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PASSWORD_AUTHENTICATOR = "io.lakewarden.spark.PasswordAuthenticator"
# All servers of a user would share one folder, and the first that ends would remove it.
OPERATION_LOGS = "spark.hadoop.hive.server2.logging.operation.log.location"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where clients find a server."""

    host: str
    thrift_port: int | None
    connect_port: int | None

    def __str__(self) -> str:
        found = []
        if self.thrift_port is not None:
            found.append(f"jdbc:hive2://{self.host}:{self.thrift_port}")
        if self.connect_port is not None:
            found.append(f"sc://{self.host}:{self.connect_port}")
        return " and ".join(found)


@contextmanager
def serving(options: ServerOptions) -> Iterator[tuple["SparkSession", Addresses]]:
    """A server for as long as the block lasts; what still runs then is given up."""
    check_spark(pyspark.__version__, OLDEST_TO_SERVE)
    with TemporaryDirectory(prefix="lakewarden-") as logs:
        spark = session({OPERATION_LOGS: logs, **server_settings(options)})
        with _stopping(spark), _thrift_server(spark, options) as thrift_port:
            connect_port = _connect_port(spark) if options.connect_port is not None else None
            yield (
                spark,
                Addresses(host=options.host, thrift_port=thrift_port, connect_port=connect_port),
            )


@contextmanager
def _stopping(spark: "SparkSession") -> Iterator[None]:
    try:
        yield
    finally:
        spark.stop()


def serve(options: ServerOptions) -> None:
    """Serve until the process is asked to end."""
    with asked_to_end() as is_over, serving(options) as (_, addresses):
        print(f"Serving at {addresses}. Ctrl-C ends it.", flush=True)
        is_over.wait()


@contextmanager
def asked_to_end() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, instead of what they do otherwise."""
    is_over = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        is_over.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield is_over
    finally:
        for number, action in before.items():
            signal.signal(number, action)


@contextmanager
def _thrift_server(spark: "SparkSession", options: ServerOptions) -> Iterator[int | None]:
    if options.thrift_port is None:
        yield None
        return
    jvm = _jvm(spark)
    if options.passwords:
        _install_authenticator(spark, options)
    # A session of its own for each connection, so that no client sees another's temporary views.
    server = _module(jvm.org.apache.spark.sql.hive.thriftserver, "HiveThriftServer2")
    running = server.startWithSparkSession(spark._jsparkSession.newSession(), False)
    try:
        yield _thrift_port(running)
    finally:
        running.stop()


def _install_authenticator(spark: "SparkSession", options: ServerOptions) -> None:
    """Have passwords looked at; Hive makes its own settings of the JVM's properties for that."""
    jvm = _jvm(spark)
    jvm.java.lang.System.setProperty(
        "hive.server2.custom.authentication.class", PASSWORD_AUTHENTICATOR
    )
    users = jvm.java.util.HashMap()
    for user, password in options.passwords.items():
        users.put(user, password)
    jvm.io.lakewarden.spark.PasswordAuthenticator.letIn(users)


def _thrift_port(running: JavaObject) -> int:
    ports = [
        service.getPortNumber()
        for service in running.getServices()
        if service.getName().startswith("Thrift")
    ]
    return int(ports[0])


def _connect_port(spark: "SparkSession") -> int:
    service = _module(_jvm(spark).org.apache.spark.sql.connect.service, "SparkConnectService")
    return int(service.server().getPort())


def _jvm(spark: "SparkSession") -> JVMView:
    return spark._jvm


def _module(package: object, name: str) -> JavaObject:
    """The one object of a Scala `object`."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
