"""Names of commands: every procedure under its own, and the usual ones under a short one."""

import re
from collections.abc import Mapping

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
