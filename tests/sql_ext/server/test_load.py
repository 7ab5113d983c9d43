"""Many clients at once get the right answers, and leave nothing behind in the server."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.process_gauges import Reading, java_below, reading
from tests.rfc.actors import until
from tests.sql_examples.clients import SparkClient, ThriftClient, remote_session
from tests.sql_ext.server.concurrent_clients import Guest, make_common_table, rows_of
from tests.sql_server import Ports

pytestmark = [pytest.mark.xdist_group("served"), pytest.mark.timeout(1800)]

# `make simulate` asks for all of it.
SECONDS = float(os.environ.get("LAKEWARDEN_LOAD_SECONDS", "3"))
SEED = int(os.environ.get("LAKEWARDEN_SEED", "20261118"))
IS_WHOLE = SECONDS >= 60
GUESTS = 20 if IS_WHOLE else 6
STATEMENTS_MIN = 1000 if IS_WHOLE else 40
# One in so many comes by Spark Connect.
CONNECTED = 3
# Threads of the JVM that stay for a minute for the next client have a connection to Python, and a
# thread there; a statement that left one behind each time would soon be seen all the same.
STAYING_MAX = 8 + GUESTS
# A pool of Spark's that has up to 200 threads, which rest for a minute.
POOL = "block-manager-"
# What other pools may still grow by, and memory besides what is in use.
THREADS_SLACK, MIB_SLACK = 16, 150


@contextmanager
def all_there(server: Ports, guests: Sequence[Guest]) -> Iterator[None]:
    """All guests connected at the same time."""
    with ExitStack() as stack:
        for number, guest in enumerate(guests):
            if number % CONNECTED:
                guest.come(stack.enter_context(ThriftClient(server.thrift)))
            else:
                session = stack.enter_context(remote_session(server.connect))
                guest.come(SparkClient(session))
        yield


def all_at_once(guests: Sequence[Guest], work: Callable[[Guest], None]) -> None:
    """Each guest's work in a thread of its own; when all are done, what went wrong is raised."""
    with ThreadPoolExecutor(len(guests)) as pool:
        done = [pool.submit(work, guest) for guest in guests]
    for one in done:
        one.result()


def begin(guest: Guest) -> None:
    guest.settle()
    guest.do_everything_once()


def until_left(server: Ports) -> tuple[Reading, Reading]:
    """What Python and the JVM hold when all have gone; in Python hardly more than at first."""

    def is_at_rest() -> bool:
        now, rest = reading(server.pid), server.at_rest
        more = (now.threads_count - rest.threads_count, now.sockets - rest.sockets)
        return max(more) <= STAYING_MAX

    until(is_at_rest)
    return reading(server.pid), reading(java_below(server.pid))


def test_many_clients_get_right_answers_and_leave_nothing_behind(
    server: Ports, tmp_path: Path
) -> None:
    guests = [Guest(number, tmp_path, SEED) for number in range(GUESTS)]
    with ThriftClient(server.thrift) as first:
        together = make_common_table(first, tmp_path)
    with all_there(server, guests):
        all_at_once(guests, begin)
    before = until_left(server)
    warmed = sum(guest.statements for guest in guests)
    end = time.monotonic() + SECONDS

    def work(guest: Guest) -> None:
        while time.monotonic() < end or all_statements(guests) - warmed < STATEMENTS_MIN:
            guest.do_something()

    with all_there(server, guests):
        all_at_once(guests, work)
    after = until_left(server)
    print(f"{all_statements(guests) - warmed} statements of {GUESTS} guests")
    for name, then, now in zip(("Python", "JVM"), before, after, strict=True):
        print(f"{name}: {then} before, {now} after")
        more = {
            name: count
            for name, count in (now.threads - then.threads).items()
            if not name.startswith(POOL)
        }
        assert sum(more.values()) <= THREADS_SLACK, more
        assert now.resident_mib <= then.resident_mib + MIB_SLACK
    for guest in guests:
        guest.check_files()
    assert rows_of(together) == {
        key: row for guest in guests for key, row in guest.together.items()
    }


def all_statements(guests: Sequence[Guest]) -> int:
    return sum(guest.statements for guest in guests)
