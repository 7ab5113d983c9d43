"""The names of the model's actions are those of the steps in the code, and none is forgotten."""

import re
from collections import deque
from collections.abc import Callable

from lakewarden.engine.plans.abort import abort
from lakewarden.engine.plans.cancel import acknowledge
from lakewarden.engine.plans.commit import commit
from lakewarden.engine.plans.give_up import give_up
from lakewarden.engine.plans.moment import reload
from lakewarden.engine.plans.publish import publish
from lakewarden.engine.plans.start import start
from lakewarden.engine.plans.sweep import sweep
from lakewarden.engine.plans.undo import carry_out
from tests.model.instant_model import Rules, State, actions, start_of

OPERATIONS: tuple[Callable[..., object], ...] = (
    publish,
    start,
    commit,
    acknowledge,
    abort,
    carry_out,
)
WITHOUT_STEPS: tuple[Callable[..., object], ...] = (reload, give_up, sweep)
# Not steps of the protocol: the work itself, which may end anywhere.
WORK = {"work: marker", "work: file", "crash"}

_STEPS = re.compile(r"Steps\b[^:]*: (.*?)\.(?: |$)")
_STEP = re.compile(r"(\d+) (.+?)(?=, \d+ |, and then|$)")

# What the model leaves out, and why nothing is lost by it.
NOT_MODELLED = {
    # There is no lock in the model.
    "publish 1 lock",
    "publish 6 unlock",
    "start 1 lock",
    "start 9 unlock",
    "commit 1 lock",
    "commit 10 unlock",
    "acknowledge 1 lock",
    "acknowledge 7 unlock",
    "abort 1 lock",
    "abort 5 unlock",
    # They ask what was read at the reload, or a sign of life, which is a hint.
    "start 3 completed",
    "start 4 cancelled",
    "start 5 held",
    "start 6 not executable",
    "acknowledge 3 completed",
    "acknowledge 4 rolled back or cancelled",
    "acknowledge 5 not cancellable",
    "abort 2 reload",
    "abort 3 a live attempt is left to see the end of its ledger itself",
    "commit 3 reload and fence",
    # Nobody else is asked by them: they are for readers, for Java, or between different instants.
    "publish 2 reload",
    "publish 3 time",
    "publish 5 claim",
    "start 8 first beat",
    "start 11 inflight",
    "commit 4 conflicts",
    "commit 6 metadata table",
    "commit 7 completion time",
}


def steps_of(function: Callable[..., object]) -> set[str]:
    """The steps that a docstring tells, each as function, number and words."""
    text = " ".join((function.__doc__ or "").split())
    found = _STEPS.search(text)
    assert found, function
    return {f"{function.__name__} {number} {words}" for number, words in _STEP.findall(found[1])}


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
    steps = set().union(*map(steps_of, OPERATIONS))
    others = {function.__name__ for function in WITHOUT_STEPS}
    assert modelled() - WORK - others == steps - NOT_MODELLED


def test_what_is_left_out_is_in_the_code() -> None:
    assert set().union(*map(steps_of, OPERATIONS)) >= NOT_MODELLED


def test_steps_are_read_from_docstrings() -> None:
    def cook() -> None:
        """Cook.

        Steps, as ever: 1 wash, 2 cut, or
        tear, 4 boil. A crash leaves a mess.
        """

    assert steps_of(cook) == {"cook 1 wash", "cook 2 cut, or tear", "cook 4 boil"}
