"""A server does not let strangers in."""

import os

import pytest

import lakewarden
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.sql_ext.server.server_options import ServerOptions, is_loopback
from lakewarden.sql_ext.server.session_settings import server_settings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_this_machine_is_served_without_questions(host: str) -> None:
    assert is_loopback(host)
    assert ServerOptions(host=host).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "warehouse", "localhost.example"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"passwords": {"ada": "x"}},
        {"token": "t"},
        {"passwords": {"ada": "x"}, "thrift_port": None},
        {"token": "t", "connect_port": None},
    ],
)
def test_others_have_to_show_who_they_are(host: str, given: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match="without authentication"):
        ServerOptions(host=host, **given)


@pytest.mark.parametrize(
    "given",
    [
        {"passwords": {"ada": "x"}, "token": "t"},
        {"passwords": {"ada": "x"}, "connect_port": None},
        {"token": "t", "thrift_port": None},
    ],
)
def test_with_a_secret_for_each_way_in_it_may_listen_anywhere(given: dict[str, object]) -> None:
    assert ServerOptions(host="0.0.0.0", **given)


def test_secrets_are_never_shown() -> None:
    options = ServerOptions(
        passwords={"ada": "sesame"}, token="sesame", settings={"spark.hadoop.fs.s3a.key": "sesame"}
    )
    assert "sesame" not in repr(options)


def test_what_a_server_allows_stands_above_what_its_settings_say() -> None:
    options = ServerOptions(
        settings={"lakewarden.allowed.roots": "/", "lakewarden.read.only": "false"},
        allowed_roots=("/lake",),
        is_read_only=True,
    )
    settings = server_settings(options)
    assert settings["lakewarden.allowed.roots"] == "/lake"
    assert settings["lakewarden.read.only"] == "true"


def test_the_classes_of_a_server_come_before_those_that_are_asked_for() -> None:
    options = ServerOptions(settings={"spark.driver.extraClassPath": "/jars/mine.jar"})
    path = server_settings(options)["spark.driver.extraClassPath"]
    assert path == f"{lakewarden.jar_path()}{os.pathsep}/jars/mine.jar"
