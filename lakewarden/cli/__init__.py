"""The command line: look at a Hudi table from a shell."""

from lakewarden.cli.entry import main

__all__ = ["main"]
