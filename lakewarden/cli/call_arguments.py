"""Arguments of a procedure's command: a path, the values it can't do without, and options."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakewarden.cli.call_names import option_names
from lakewarden.cli.parser import bad_arguments
from lakewarden.procedures.declaring.declaration import Parameter, Procedure
from lakewarden.procedures.declaring.sql_types import SqlType
from lakewarden.procedures.reference import default_text

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
