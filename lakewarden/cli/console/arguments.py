"""Arguments of `lakewarden sql` and `lakewarden serve`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from lakewarden.cli.call_arguments import CommandParser
from lakewarden.cli.console.loop import SqlCommand
from lakewarden.cli.output import FORMATS
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.sql_ext.server.server_options import (
    CONNECT_PORT,
    LOOPBACK,
    THRIFT_PORT,
    ServerOptions,
)


def parse_sql(arguments: Sequence[str]) -> SqlCommand:
    """What `lakewarden sql` is asked to do."""
    parser = CommandParser(
        prog="lakewarden sql", description="Run SQL statements, or type them.", allow_abbrev=False
    )
    parser.add_argument(
        "-e", "--execute", action="append", default=[], metavar="SQL", help="run these statements"
    )
    parser.add_argument(
        "-f", "--file", action="append", default=[], metavar="FILE", help="run a file's statements"
    )
    parser.add_argument("--remote", metavar="URL", help="a Spark Connect server: sc://host:port")
    parser.add_argument("--output", choices=sorted(FORMATS), default="table")
    parser.add_argument(
        "--limit", type=int, metavar="ROWS", help="show at most this many rows of each answer"
    )
    _add_settings(parser)
    given = parser.parse_args(arguments)
    return SqlCommand(
        statements=tuple(given.execute),
        files=tuple(given.file),
        remote=given.remote,
        settings=tuple(given.conf),
        output=given.output,
        limit=given.limit,
    )


def parse_serve(arguments: Sequence[str]) -> ServerOptions:
    """What `lakewarden serve` is asked to be."""
    parser = CommandParser(
        prog="lakewarden serve",
        description="Let JDBC and Spark Connect clients work in a session of this process.",
        allow_abbrev=False,
    )
    parser.add_argument("--host", default=LOOPBACK, help="where to listen (%(default)s)")
    parser.add_argument(
        "--port", type=int, default=THRIFT_PORT, help="for JDBC; 0 for any (%(default)s)"
    )
    parser.add_argument("--no-thrift", action="store_true", help="no JDBC")
    parser.add_argument(
        "--connect-port", type=int, default=CONNECT_PORT, help="0 for any (%(default)s)"
    )
    parser.add_argument("--no-connect", action="store_true", help="no Spark Connect")
    parser.add_argument("--user", help="who may connect by JDBC")
    parser.add_argument("--password-file", metavar="FILE", help="the file with the password")
    parser.add_argument(
        "--token-file", metavar="FILE", help="the file with the token of Connect clients"
    )
    parser.add_argument(
        "--allowed-root",
        action="append",
        default=[],
        metavar="FOLDER",
        help="allow only tables in this folder; may be repeated",
    )
    parser.add_argument("--read-only", action="store_true", help="refuse all changes")
    parser.add_argument("--warehouse", metavar="FOLDER", help="keep the catalog there")
    _add_settings(parser)
    return _server_options(parser.parse_args(arguments))


def _server_options(given: argparse.Namespace) -> ServerOptions:
    if (given.user is None) != (given.password_file is None):
        raise InvalidRequest(
            "bad_arguments",
            what="--user and --password-file belong together.",
            why="A client that connects sends both.",
            now="Give both, or neither.",
        )
    passwords = {given.user: _secret(given.password_file)} if given.user else {}
    return ServerOptions(
        host=given.host,
        thrift_port=None if given.no_thrift else given.port,
        connect_port=None if given.no_connect else given.connect_port,
        passwords=passwords,
        token=_secret(given.token_file) if given.token_file else None,
        settings=dict(given.conf),
        allowed_roots=tuple(given.allowed_root),
        is_read_only=given.read_only,
        warehouse=None if given.warehouse is None else str(Path(given.warehouse).resolve()),
    )


def _secret(name: str) -> str:
    """A secret from its file: in an argument every user of the machine could read it."""
    try:
        text = Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text:
        raise InvalidRequest(
            "unreadable_secret",
            what=f"The file {name} holds no secret.",
            why="The file is empty, or this process cannot read it.",
            now="Write the secret into it, readable for you only.",
            file=name,
        )
    return text


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--conf",
        action="append",
        type=_setting,
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the session; may be repeated",
    )


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value
