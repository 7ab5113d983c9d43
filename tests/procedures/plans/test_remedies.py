"""Every remedy is a CALL that can be copied: its procedure and its arguments are there."""

import re

import pytest

from lakewarden.engine.services.inspection.state.blockers import Remedies, Remedy
from lakewarden.engine.transaction.state.context import Service
from lakewarden.procedures.binding import bind
from lakewarden.procedures.registry import procedure_named

INSTANT = "20261118101500123"
REMEDIES = Remedies("/lake/orders")
ALL = (
    REMEDIES.cancel(INSTANT),
    REMEDIES.cancel(INSTANT, force=True),
    *(REMEDIES.run(service, INSTANT) for service in Service),
    REMEDIES.compact(),
    REMEDIES.cluster(),
    REMEDIES.clean(),
    REMEDIES.archive(),
    REMEDIES.sweep(),
    REMEDIES.maintain_metadata(),
    REMEDIES.roll_back_failed(),
    REMEDIES.roll_back(INSTANT),
    REMEDIES.delete_savepoint(INSTANT),
    REMEDIES.restore(INSTANT),
)


@pytest.mark.parametrize("remedy", ALL, ids=lambda remedy: remedy.sql)
def test_a_remedy_can_be_called(remedy: Remedy) -> None:
    call = re.fullmatch(r"CALL (\w+)\((.+)\)", remedy.sql)
    assert call is not None
    given = dict(re.findall(r"(\w+) => '?([^',]+)'?", call[2]))
    bound = bind(procedure_named(call[1]), [], given)
    assert bound["path"] == "/lake/orders"
    assert remedy.python.startswith("table.")
