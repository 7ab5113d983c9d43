"""Arguments of the command line, checked before any table is opened."""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import TypeAlias

from lakewarden.cli.call_arguments import (
    COMMANDS,
    OTHERS,
    CallCommand,
    CommandParser,
    add_arguments,
    bad_arguments,
    call_command,
    command_names,
    spelled_out,
    unknown_command,
    usage,
)
from lakewarden.cli.command_line import CommandLine
from lakewarden.cli.output import FORMATS
from lakewarden.engine.read.query.plan_query import Mode
from lakewarden.procedures.declaring.declaration import Procedure

_Commands: TypeAlias = "argparse._SubParsersAction[CommandParser]"

_COMMANDS = {
    "timeline": "the instants of the active timeline",
    "files": "the latest file slices",
    "partitions": "the partitions",
    "indexes": "the indexes of the metadata table",
    "read": "the rows, or the changes since an instant",
    "explain": "what a read would open and skip, and why",
}


def parse(arguments: Sequence[str] | None) -> CommandLine | CallCommand:
    """The request of a command line, of that of this process without any."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    procedure = COMMANDS.get(given[0]) if given else None
    if procedure is not None:
        given = spelled_out(given, procedure)
    elif given and given[0] not in (*_COMMANDS, *OTHERS) and given[0][:1] != "-":
        raise unknown_command(given[0])
    parser = _parser() if procedure is None else _call_parser(procedure)
    known, others = parser.parse_known_args(given)
    parsed = vars(known)
    unknown = others if procedure is None else [one for one in others if one.startswith("-")]
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if procedure is not None:
        return call_command(procedure, parsed, others)
    command = CommandLine(**{**parsed, "where": tuple(parsed.get("where", ()))})
    _check_window(command)
    return command


def own_options(name: str) -> list[str]:
    """The options of a command that is no procedure."""
    parser = CommandParser(allow_abbrev=False)
    described = _add_own(parser.add_subparsers(), name).format_help()
    return sorted(set(re.findall(r"--[a-z][a-z-]+", described)))


def _check_window(command: CommandLine) -> None:
    if command.until is not None and command.since is None:
        raise bad_arguments("--until needs --since.", "lakewarden read --help")
    is_snapshot = command.as_of is not None or command.mode != Mode.SNAPSHOT.value
    if command.since is not None and (is_snapshot or not command.use_metadata):
        what = "--since can't be combined with --as-of, --mode or --no-metadata."
        raise bad_arguments(what, "lakewarden read --help")


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="lakewarden", description="Inspect and maintain a Hudi table.", allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in _COMMANDS:
        _add_own(commands, name)
    return parser


def _add_own(commands: _Commands, name: str) -> CommandParser:
    description = _COMMANDS[name]
    command = commands.add_parser(
        name, help=description, description=f"Show {description}.", allow_abbrev=False
    )
    _add_common(command)
    if name == "files":
        command.add_argument("--partition", help="only this partition")
    if name in ("files", "read", "explain"):
        command.add_argument("--as-of", metavar="TIME", help="read the table as of this time")
        _add_no_metadata(command)
    if name in ("read", "explain"):
        _add_query(command)
    if name == "read":
        command.add_argument("--since", metavar="TIME", help="only changes completed after it")
        command.add_argument("--until", metavar="TIME", help="only changes until then")
    return command


def _call_parser(procedure: Procedure) -> argparse.ArgumentParser:
    """A parser of one command only; making one of all takes longer than most calls."""
    parser = CommandParser(prog="lakewarden", allow_abbrev=False)
    _add_call(parser.add_subparsers(dest="command", required=True), procedure)
    return parser


def _add_call(commands: _Commands, procedure: Procedure) -> None:
    name, *aliases = command_names(procedure)
    summary = procedure.summary.replace("%", "%%")
    command = commands.add_parser(
        name,
        aliases=aliases,
        help=summary.partition("\n")[0],
        description=summary,
        usage=usage(procedure),
        allow_abbrev=False,
    )
    _add_output(command)
    add_arguments(command, procedure)


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", metavar="PATH", help="the folder of the table, or its URI")
    command.add_argument("--limit", type=_count, metavar="ROWS", help="show at most this many")
    _add_output(command)


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--output", choices=sorted(FORMATS), default="table", help="json gives an object a line"
    )
    command.add_argument(
        "--option",
        dest="options",
        action=_Options,
        default={},
        metavar="NAME=VALUE",
        help="an option of the storage; may be repeated",
    )


def _add_no_metadata(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--no-metadata",
        dest="use_metadata",
        action="store_false",
        help="list the storage instead of asking the metadata table",
    )


def _add_query(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--columns", type=_names, metavar="NAME,NAME", help="only these; all without it"
    )
    command.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help="for example \"qty > 3 and city = 'Oslo'\"; all of them must hold",
    )
    command.add_argument(
        "--mode", choices=[mode.value for mode in Mode], default=Mode.SNAPSHOT.value
    )


class _Options(argparse.Action):
    """Gathers NAME=VALUE; true, false, objects and lists are taken as JSON, the rest as text."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        name, equals, text = str(values).partition("=")
        if not name or not equals:
            parser.error(f"argument {option_string}: {values!r} is not NAME=VALUE")
        gathered = {**getattr(namespace, self.dest), name: _option_value(text)}
        setattr(namespace, self.dest, gathered)


def _option_value(text: str) -> object:
    if text not in ("true", "false") and not text.startswith(("{", "[")):
        return text
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name")
    return names
