"""Names of commands: every procedure under its own, and the usual ones under a short one."""

import difflib
import re
from collections.abc import Mapping

from lakewarden.cli.parser import bad_arguments
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.declaration import Parameter, Procedure
from lakewarden.procedures.registry import PROCEDURES

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
