"""The entry of the command line: run one command, and tell by the exit code how it went."""

import io
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from lakewarden.cli.answers import answer
from lakewarden.cli.arguments import parse
from lakewarden.cli.call_arguments import CallCommand
from lakewarden.cli.calls import HEALTH, UNREADABLE, call_answer, watched
from lakewarden.cli.command_line import CommandLine
from lakewarden.cli.output import FORMATS
from lakewarden.cli.overview import all_commands, completion, overview, version_line
from lakewarden.engine.kernel.errors import Conflict, Defect, LakewardenError, Unavailable
from lakewarden.engine.kernel.events import EventSink
from lakewarden.engine.run.ports import Ports
from lakewarden.late_imports import run_console, run_server
from lakewarden.progress import ProgressLine
from lakewarden.table import Table

DONE, ERROR, RETRY, CONFLICT, INTERRUPTED = 0, 1, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command: done (0), error (1), try again (2), conflict (3) or interrupted (130).

    `health` says whether all is well (0), something wants attention (1), or the table cannot be
    read (2).
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    codes, is_health = [DONE], False
    try:
        special = _SPECIAL.get(given[0] if given else "--help")
        if special is not None:
            return special(given[1:])
        command = parse(given)
        is_health = isinstance(command, CallCommand) and command.procedure.name == HEALTH
        with ProgressLine.on_terminal() as line:
            _print(_lines(command, codes, line), before=line.end)
    except LakewardenError as error:
        code = _failed(error)
        return UNREADABLE if is_health else code
    except BrokenPipeError:
        _leave_stdout()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as cause:
        return _failed(_defect(cause))
    return max(codes)


def _sql(arguments: Sequence[str]) -> int:
    return DONE if run_console(arguments) else ERROR


def _serve(arguments: Sequence[str]) -> int:
    run_server(arguments)
    return DONE


def _shown(lines: Callable[[Sequence[str]], Iterable[str]]) -> Callable[[Sequence[str]], int]:
    def show(arguments: Sequence[str]) -> int:
        _print(lines(arguments))
        return DONE

    return show


_SPECIAL: Mapping[str, Callable[[Sequence[str]], int]] = {
    "sql": _sql,
    "serve": _serve,
    "commands": _shown(lambda _: all_commands()),
    "completion": _shown(completion),
    **dict.fromkeys(("-h", "--help"), _shown(lambda _: overview())),
    "--version": _shown(lambda _: [version_line()]),
}


def _lines(
    command: CommandLine | CallCommand, codes: list[int], events: EventSink
) -> Iterable[str]:
    if isinstance(command, CallCommand):
        return FORMATS[command.output](watched(call_answer(command, events), codes))
    found = answer(Table(command.path, command.options, ports=Ports(events=events)), command)
    rows = islice(found.rows, command.limit)
    return FORMATS[command.output](replace(found, rows=rows))


def _print(lines: Iterable[str], before: Callable[[], None] = lambda: None) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # JSON is UTF-8 whatever the terminal is, and file names need not be text at all.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    for line in lines:
        before()
        print(line)
    sys.stdout.flush()


def _leave_stdout() -> None:
    """The reader has enough; what is left in our buffer must not fail on the way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_code(error: LakewardenError) -> int:
    """How the process ends after an error: 2 and 3 tell scripts that trying again may help."""
    if isinstance(error, Conflict):
        return CONFLICT
    return RETRY if isinstance(error, Unavailable) else ERROR


def _failed(error: LakewardenError) -> int:
    print(f"{error.code}: {error}", file=sys.stderr)
    return exit_code(error)


def _defect(cause: Exception) -> Defect:
    place = traceback.extract_tb(cause.__traceback__)[-1]
    return Defect(
        "unexpected_error",
        what=f"{type(cause).__name__}: {cause}",
        why=f"It came from {Path(place.filename).name}, line {place.lineno}, in {place.name}.",
        now="This is a defect of Lakewarden. Please report it with the command.",
    )
