"""The overview: what `lakewarden` can do, on one screen, and what a shell completes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version

from lakewarden.cli.arguments import own_options
from lakewarden.cli.call_arguments import COMMANDS, OWN, bad_arguments, known_names, option_names
from lakewarden.procedures.chapters import CHAPTERS, procedures_of

GROUPS: Mapping[str, tuple[str, ...]] = {
    "look": ("timeline", "files", "partitions", "indexes", "properties", "config", "health"),
    "rows": ("read", "explain"),
    "history": ("commits", "show-cleans", "show-rollbacks", "show-retention"),
    "plans": ("plans", "explain-plan", "blockers", "cancel", "locks", "ledger"),
    "services": ("compact", "log-compact", "cluster", "clean", "archive", "run-ttl", "sweep"),
    "savepoints": ("create-savepoint", "show-savepoints", "rollback-to-savepoint"),
    "repair": ("validate-table", "repair-deduplicate", "rollback-to-instant"),
    "metadata": ("create-index", "drop-index", "run-metadata-maintenance"),
    "SQL": ("sql", "serve"),
}
SHELLS = ("bash", "zsh")


def overview() -> Iterator[str]:
    """One screen: the usual commands in groups, and where the rest is."""
    yield "usage: lakewarden COMMAND TABLE [--option value ...]"
    yield ""
    width = max(map(len, GROUPS))
    for group, names in GROUPS.items():
        yield f"  {group:<{width}}  {'  '.join(names)}"
    yield ""
    yield "  lakewarden COMMAND --help          what a command takes"
    yield "  lakewarden commands                all commands, each with what it does"
    yield "  lakewarden completion bash         completion for a shell, bash or zsh"
    yield "  lakewarden --version               the version"
    yield ""
    yield "TABLE is a folder or a URI, such as /data/orders or s3://lake/orders."
    yield "Exit codes: 0 done, 1 error, 2 try again, 3 conflict, 130 interrupted."
    yield "health: 0 well, 1 something wants attention, 2 the table cannot be read."


def version_line() -> str:
    return f"lakewarden {version('lakewarden')}"


def all_commands() -> Iterator[str]:
    """All commands by chapter, each with the first sentence of what it does."""
    for chapter in CHAPTERS:
        yield f"{chapter.__name__.rpartition('.')[2]}:"
        for procedure in procedures_of(chapter):
            sentence = re.split(r"[.;\n]", procedure.summary, maxsplit=1)[0]
            yield f"  {procedure.name.replace('_', '-'):<36} {sentence}"


def completion(arguments: Sequence[str]) -> Iterator[str]:
    """The script that completes commands, options and files in a shell."""
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        raise bad_arguments("Completion is for bash or zsh.", "lakewarden completion bash")
    return iter(_bash() if arguments[0] == "bash" else _zsh())


def _bash() -> Sequence[str]:
    cases = [f'    {name}) words="{" ".join(options)}" ;;' for name, options in _options().items()]
    return [
        "# source <(lakewarden completion bash)",
        "_lakewarden() {",
        "  local word=${COMP_WORDS[COMP_CWORD]} words=",
        '  case "$([ "$COMP_CWORD" -gt 1 ] && echo "${COMP_WORDS[1]}")" in',
        f'    "") words="{" ".join(known_names())}" ;;',
        *cases,
        "  esac",
        '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
        "}",
        "complete -o default -F _lakewarden lakewarden",
    ]


def _zsh() -> Sequence[str]:
    cases = [
        f"    {name}) compadd -- {' '.join(options)} ;;" for name, options in _options().items()
    ]
    return [
        "#compdef lakewarden",
        "# source <(lakewarden completion zsh)",
        "_lakewarden() {",
        "  if (( CURRENT == 2 )); then",
        f"    compadd -- {' '.join(known_names())}",
        "    return",
        "  fi",
        '  if [[ "$PREFIX" != -* ]]; then _files; return; fi',
        '  case "${words[2]}" in',
        *cases,
        "  esac",
        "}",
        "compdef _lakewarden lakewarden",
    ]


def _options() -> Mapping[str, Sequence[str]]:
    """The options of each command, as they are shown."""
    own = {name: own_options(name) for name in OWN}
    calls = {
        name: ["--output", "--option", *(option_names(one)[0] for one in procedure.parameters)]
        for name, procedure in COMMANDS.items()
        if "_" not in name
    }
    return {**own, **calls, "completion": SHELLS}
