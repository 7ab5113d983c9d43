"""The parser of command lines: its complaints are errors like all others."""

import argparse
from typing import NoReturn

from lakewarden.engine.kernel.errors import InvalidRequest


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
