"""What services and states are called in the arguments of procedures about plans."""

from collections.abc import Callable

from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.timeline.instants.state import InstantState
from lakewarden.engine.transaction.state.service import Service
from lakewarden.procedures.declaring.words import one_word

_OTHERS = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE, Action.INDEXING)
SERVICES = (*(one.value for one in Service), *(one.value for one in _OTHERS))


def chosen_service(given: str | None) -> str | None:
    """The service that is meant; none where all are."""
    return None if given is None else one_word("service", given, SERVICES)


def chosen_state(given: str | None) -> Callable[[InstantState], bool]:
    """Whether a state is the one that is meant; its first word stands for all that begin so."""
    if given is None:
        return lambda state: True
    words = [state.value for state in InstantState]
    first = dict.fromkeys(word.partition(",")[0] for word in words)
    meant = one_word("state", given, (*first, *words))
    return lambda state: state.value == meant or state.value.partition(",")[0] == meant
