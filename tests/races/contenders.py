"""Contenders: the processes of a run, each of which goes on until it is killed.

Writers also tend the table. Readers hold every read against the journals of the writers.
"""

import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from lakewarden import Table
from lakewarden.engine.kernel.errors import Conflict, LakewardenError, Unavailable, Unsettled
from tests.races.accounts import COMMON, carry_out, drawn_operation, findings, own_keys
from tests.races.journals import Answer, Journal, Journals, Operation

SERVICE_SHARE = 0.3
# What readers leave to the writers of a small machine.
REST_SECONDS = 0.3
# What may happen to whoever is stopped, or waits for those that are; anything else is damage.
EXPECTED = (Conflict, Unavailable, Unsettled)

Service = Callable[[Table, Random], object]


def _compact(table: Table, chance: Random) -> object:
    return table.compaction.schedule_and_run(cancellable=chance.random() < 0.5)


def _cluster(table: Table, chance: Random) -> object:
    return table.clustering.schedule_and_run(cancellable=chance.random() < 0.5)


def _run_what_is_left(table: Table, chance: Random) -> object:
    service = chance.choice((table.compaction, table.clustering))
    return service.run(limit=1)


def _clean(table: Table, _: Random) -> object:
    return table.clean(commits_retained=1)


def _archive(table: Table, _: Random) -> object:
    retained = {"hoodie.clean.commits.retained": "1"}
    return table.archive(min_commits=3, max_commits=5, options=retained)


SERVICES: dict[str, Service] = {
    "compact": _compact,
    "cluster": _cluster,
    "run": _run_what_is_left,
    "clean": _clean,
    "archive": _archive,
}
# Many commits in a row need many cleans, or file groups become long.
DRAWN_SERVICES = ("clean", "clean", "archive", "cluster", "compact", "run")


def write_until_killed(place: str, folder: Path, name: str, seed: int) -> None:
    """Write, and note what is started and how it ends."""
    journal, chance = Journal(folder / f"{name}.jsonl"), Random(f"{seed} {time.monotonic_ns()}")
    number = sum("begins" in entry for entry in journal.entries())
    journal.note(starts=name)
    while True:
        if chance.random() < SERVICE_SHARE:
            _tend(place, journal, chance)
            continue
        number += 1
        operation = drawn_operation(chance, name, f"{name}{number}")
        noted(journal, operation, lambda one: carry_out(Table(place), one))


def noted(journal: Journal, operation: Operation, carry_out: Callable[[Operation], object]) -> None:
    """Carry an operation out between two entries: that it begins, and what it was answered."""
    journal.note(begins=operation.name, kind=operation.kind, effects=operation.effects)
    try:
        answer = carry_out(operation)
    except Exception as error:
        lost_or_refused = Answer.REFUSED if isinstance(error, Conflict) else Answer.LOST
        journal.note(answer=lost_or_refused, **_described(error))
    else:
        journal.note(answer=Answer.DONE, instant=answer)


def _tend(place: str, journal: Journal, chance: Random) -> None:
    service = chance.choice(DRAWN_SERVICES)
    try:
        SERVICES[service](Table(place), chance)
    except Exception as error:
        journal.note(service=service, **_described(error))
    else:
        journal.note(service=service, code="")


def _described(error: Exception) -> dict[str, object]:
    code = error.code if isinstance(error, LakewardenError) else type(error).__name__
    damage = None if isinstance(error, EXPECTED) else "".join(traceback.format_exception(error))
    return {"code": code, "said": f"{error}"[:500], "damage": damage}


def read_until_killed(place: str, folder: Path, name: str, writers: Sequence[str]) -> None:
    """Read, and note what is wrong with the rows."""
    journal, chance = Journal(folder / f"{name}.jsonl"), Random(time.monotonic_ns())
    journals = Journals([folder / f"{writer}.jsonl" for writer in writers])
    while True:
        time.sleep(REST_SECONDS)
        how = chance.choice(("metadata", "listing", "lookup"))
        keys = (*COMMON, *own_keys(chance.choice(writers))) if how == "lookup" else None
        began = time.monotonic()
        try:
            rows = read_rows(Table(place), how, keys)
        except Exception as error:
            journal.note(read=how, **_described(error))
            continue
        ended = time.monotonic()
        wrong = findings(rows, journals.read_on().values(), began, ended, keys)
        journal.note(read=how, code="", damage="\n".join(wrong) or None)


def read_rows(table: Table, how: str, keys: Sequence[str] | None = None) -> list[dict[str, object]]:
    columns = ["id", "amount", "operation", "debited", "credited"]
    if keys is not None:
        return table.lookup(keys, columns).to_pylist()
    return table.read_arrow(columns, use_metadata=how == "metadata").to_pylist()
