"""The names of the model's actions are those of steps of the protocol, and none is forgotten."""

from collections import deque
from pathlib import Path

from tests.model.instant_model import Rules, State, actions, start_of
from tests.protocol_steps import explained_steps

PROTOCOL = Path(__file__).parents[2] / "docs/protocol.md"
OPERATIONS = frozenset(
    (
        "publish",
        "start",
        "work",
        "commit",
        "cancel",
        "abort",
        "rollback-execution",
        "abort-attempt",
        "reload",
        "sweep",
    )
)

# What the model leaves out, and why nothing is lost by it.
NOT_MODELLED = {
    # There is no lock in the model.
    "publish.lock",
    "publish.unlock",
    "start.lock",
    "start.unlock",
    "commit.lock",
    "commit.unlock",
    "cancel.lock",
    "cancel.unlock",
    "abort.lock",
    "abort.unlock",
    "rollback-execution.lock",
    "rollback-execution.unlock",
    # They ask what was read at the reload, or a heartbeat, which is a hint.
    "start.completed",
    "start.cancelled",
    "start.held",
    "start.executable",
    "work.check-claim",
    # It saves work, and what has to give way does so at its commit in any case.
    "work.look",
    # Lists say what the markers of the model say.
    "work.list",
    "cancel.completed",
    "cancel.ended",
    "cancel.refuse",
    "abort.reload",
    "abort.live",
    "commit.reload",
    "rollback-execution.reload",
    "reload.load",
    "reload.ledgers",
    "reload.load-again",
    # The properties are listed for readers; an index is no part of the model of one instant.
    "reload.ready",
    "sweep.due",
    "sweep.ledger",
    "sweep.list",
    # Nobody else is asked by them: they are for readers, for Java, or between different instants.
    "publish.reload",
    "publish.time",
    "publish.first-heartbeat",
    "publish.claim",
    "publish.heartbeat",
    "publish.inflight",
    "start.heartbeat",
    "start.inflight",
    "work.heartbeat",
    "commit.fence",
    "commit.conflicts",
    "commit.metadata",
    "commit.metadata-compaction",
    "commit.time",
    "abort.hide",
    "rollback-execution.metadata",
    "rollback-execution.instant-files",
    "abort-attempt.heartbeats",
    "sweep.entry",
    # A lazy cleaner of the model does it.
    "abort-attempt.cancel",
}


def steps() -> set[str]:
    """The steps of the operations that act upon one instant."""
    explained = explained_steps(PROTOCOL.read_text(encoding="utf-8"))
    return {step for step in explained if step.partition(".")[0] in OPERATIONS}


def modelled() -> set[str]:
    """The names of all actions that the model ever makes."""
    names: set[str] = set()
    seen: set[State] = {start_of(2, 1, 1)}
    queue = deque(seen)
    while queue:
        for name, after in actions(queue.popleft(), Rules()):
            names.add(name)
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return names


def test_actions_and_steps_have_the_same_names() -> None:
    assert modelled() - {"crash"} == steps() - NOT_MODELLED


def test_what_is_left_out_is_in_the_protocol() -> None:
    assert steps() >= NOT_MODELLED
