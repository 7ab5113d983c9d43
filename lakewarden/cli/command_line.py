"""A request: what a command line asks for, parsed."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """One command with its arguments; those that a command does not have keep their defaults."""

    command: str
    path: str
    output: str
    options: Mapping[str, object]
    limit: int | None
    partition: str | None = None
    columns: tuple[str, ...] | None = None
    where: tuple[str, ...] = ()
    as_of: str | None = None
    since: str | None = None
    until: str | None = None
    mode: str = "snapshot"
    use_metadata: bool = True
