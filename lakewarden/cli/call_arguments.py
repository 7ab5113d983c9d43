"""Arguments of a procedure's command: a path, the values it can't do without, and options.

The parser of command lines: its complaints are errors like all others.

Names of commands: every procedure under its own, and the usual ones under a short one.
"""

import argparse
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.declaration import Parameter, Procedure, SqlType
from lakewarden.procedures.reference import default_text
from lakewarden.procedures.registry import PROCEDURES


class CommandParser(argparse.ArgumentParser):
    """A parser that raises; by itself it would exit with 2, which here means to try again."""

    def error(self, message: str) -> NoReturn:
        raise bad_arguments(f"{message[:1].upper()}{message[1:]}.", f"{self.prog} --help")


def bad_arguments(what: str, help_command: str) -> InvalidRequest:
    """A command line that is not understood."""
    return InvalidRequest(
        "bad_arguments",
        what=what,
        why="The command line is not valid.",
        now=f"Run: {help_command}",
    )


SHORT_NAMES: Mapping[str, str] = {
    "archive": "archive_commits",
    "blockers": "show_blockers",
    "cancel": "cancel_plan",
    "clean": "run_clean",
    "cluster": "run_clustering",
    "commits": "show_commits",
    "compact": "run_compaction",
    "config": "show_config",
    "health": "table_health",
    "ledger": "show_ledger",
    "locks": "show_locks",
    "log-compact": "run_log_compaction",
    "plans": "show_plans",
    "properties": "show_table_properties",
}

# Commands that look at a table and are no procedures.
OWN = ("timeline", "files", "partitions", "indexes", "read", "explain")
# Commands that are no call on a table.
OTHERS = ("sql", "serve", "commands", "completion", "help")


def command_names(procedure: Procedure) -> tuple[str, ...]:
    """All names of a procedure's command; the first is the one to be shown."""
    short = [name for name, long in SHORT_NAMES.items() if long == procedure.name]
    return tuple(dict.fromkeys([procedure.name.replace("_", "-"), procedure.name, *short]))


COMMANDS: Mapping[str, Procedure] = {
    name: procedure for procedure in PROCEDURES.values() for name in command_names(procedure)
}


def option_names(parameter: Parameter) -> tuple[str, ...]:
    """All spellings of an argument's option; the first is the one to be shown."""
    spellings = (way for name in parameter.spellings for way in _ways(name))
    return tuple(dict.fromkeys(f"--{spelling}" for spelling in spellings))


def _ways(name: str) -> tuple[str, ...]:
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    head, *tail = snake.split("_")
    return snake.replace("_", "-"), snake, head + "".join(map(str.title, tail)), name


def known_names() -> tuple[str, ...]:
    """The names of commands as they are shown: with hyphens."""
    return tuple(sorted({*OWN, *OTHERS, *(name for name in COMMANDS if "_" not in name)}))


def unknown_command(name: str) -> InvalidRequest:
    """A mistyped command, with the ones that it may have been."""
    spelled = name.lower().replace("_", "-")
    nearest = difflib.get_close_matches(spelled, known_names(), n=2, cutoff=0.6)
    did_you_mean = f" Did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""
    return bad_arguments(f"Lakewarden has no command {name!r}.{did_you_mean}", "lakewarden --help")


# Before the names of arguments among what was parsed, so that none is taken for one of ours.
_GIVEN = "given "
_TRUTHS = ("true", "false")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCommand:
    """One call of a procedure, with what was given for its arguments."""

    procedure: Procedure
    named: Mapping[str, object]
    output: str
    storage_options: Mapping[str, object] = field(default_factory=dict, repr=False)


def add_arguments(command: argparse.ArgumentParser, procedure: Procedure) -> None:
    """Give a command an option for every argument, in all of its spellings."""
    for parameter in procedure.parameters:
        dest = _GIVEN + parameter.name
        shown, *others = option_names(parameter)
        if parameter.type is SqlType.BOOLEAN:
            _add_flag(command, (shown,), dest, "true", _help(parameter))
            _add_flag(command, others, dest, "true", argparse.SUPPRESS)
            _add_flag(command, map(_negated, (shown, *others)), dest, "false", argparse.SUPPRESS)
        else:
            _add_value(command, (shown,), dest, _hint(parameter), _help(parameter))
            _add_value(command, others, dest, _hint(parameter), argparse.SUPPRESS)
        if parameter.name == "op":
            for word in ("schedule", "execute"):
                _add_flag(command, (f"--{word}",), dest, word, f"The same as --op {word}.")


def _add_flag(
    command: argparse.ArgumentParser, names: Iterable[str], dest: str, value: str, text: str
) -> None:
    for name in names:
        command.add_argument(
            name,
            dest=dest,
            action="store_const",
            const=value,
            default=argparse.SUPPRESS,
            help=text,
        )


def _add_value(
    command: argparse.ArgumentParser, names: Iterable[str], dest: str, hint: str, text: str
) -> None:
    for name in names:
        command.add_argument(name, dest=dest, metavar=hint, default=argparse.SUPPRESS, help=text)


def spelled_out(arguments: Sequence[str], procedure: Procedure) -> list[str]:
    """A command line whose flags have no values: `--dry-run false` is `--no-dry-run`."""
    flags = {
        name
        for parameter in procedure.parameters
        if parameter.type is SqlType.BOOLEAN
        for name in option_names(parameter)
    }
    plain: list[str] = []
    waiting = list(arguments)
    while waiting:
        name, equals, value = waiting[0].partition("=")
        taken = waiting.pop(0)
        if name not in flags:
            plain.append(taken)
            continue
        if not equals and waiting and waiting[0].lower() in _TRUTHS:
            value = waiting.pop(0)
        plain.append(_negated(name) if _is_false(name, value) else name)
    return plain


def call_command(
    procedure: Procedure, parsed: Mapping[str, object], words: Sequence[str]
) -> CallCommand:
    """What a command line asks for; words without an option fill the places that are left."""
    named = {
        name.removeprefix(_GIVEN): value
        for name, value in parsed.items()
        if name.startswith(_GIVEN)
    }
    places = [place for place in _places(procedure) if place not in named]
    if len(words) > len(places):
        raise bad_arguments(
            f"{words[len(places)]!r} is not understood.",
            f"lakewarden {procedure.name.replace('_', '-')} --help",
        )
    options = parsed["options"]
    return CallCommand(
        procedure=procedure,
        named={**named, **dict(zip(places, words, strict=False))},
        output=str(parsed["output"]),
        storage_options=options if isinstance(options, Mapping) else {},
    )


def usage(procedure: Procedure) -> str:
    """How a command is used, in one line."""
    words = "".join(f" [{place.upper()}]" for place in _places(procedure))
    return f"lakewarden {procedure.name.replace('_', '-')}{words} [--option value ...]"


def _places(procedure: Procedure) -> list[str]:
    """The arguments that words without an option stand for: the table first."""
    names = [one.name for one in procedure.parameters]
    needed = [one.name for one in procedure.parameters if one.is_required]
    if "table" not in names:
        return names[:1]
    if "path" in needed:
        return needed
    return ["path", *(name for name in needed if name != "table")]


def _negated(flag: str) -> str:
    return flag.replace("--", "--no-", 1)


def _is_false(flag: str, value: str) -> bool:
    if value and value.lower() not in _TRUTHS:
        raise bad_arguments(f"{flag} {value} is neither true nor false.", "lakewarden --help")
    return value.lower() == "false"


def _hint(parameter: Parameter) -> str:
    return parameter.type.value.partition("<")[0]


def _help(parameter: Parameter) -> str:
    default = default_text(parameter)
    text = parameter.comment + (f" Default: {default}." if default else "")
    # A percent sign would begin a placeholder.
    return text.replace("%", "%%")
