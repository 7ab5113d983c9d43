"""Outages of an S3 server in the middle of a write: what the next writes have to wait for.

A write that meets one has its requests tried again, and may end well. Its lock must not outlive
the outage. By hand, `LAKEWARDEN_OUTAGES=40` tries so many moments, with outages that last longer
than requests are tried again, and measures.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from urllib.request import urlopen

import pytest

from bench.remote_requests import DistantS3, distant_s3, small_table
from lakewarden import Table
from lakewarden.engine.kernel.errors import LakewardenError
from lakewarden.engine.storage.port import Location

MOMENTS = int(os.environ.get("LAKEWARDEN_OUTAGES", "0"))
# An upsert makes some sixty requests; with the 30th it has the lock, to commit.
AFTER = [round(1 + number * 58 / MOMENTS) for number in range(MOMENTS)] or [30]
OUTAGE_SECONDS = 25.0 if MOMENTS else 0.5
WITHIN_SECONDS = 10.0
_OTHER = """
import json, sys
from lakewarden import Table
table = Table(*json.loads(sys.argv[1]))
for line in sys.stdin:
    print(table.upsert([json.loads(line)]).rows_updated, flush=True)
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[DistantS3]:
    with distant_s3() as server:
        yield server


@pytest.fixture(scope="module")
def place(s3: DistantS3) -> Location:
    return small_table(s3)


@pytest.fixture(scope="module")
def other(place: Location) -> "Iterator[subprocess.Popen[str]]":
    """Another process with the table, which upserts the rows that it is given."""
    given = json.dumps([place.uri, dict(place.options)])
    command = [sys.executable, "-c", _OTHER, given]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.kill()


def begin_outage(s3: DistantS3, after: int, *, is_done: bool) -> None:
    done = "&is_done=1" if is_done else ""
    query = f"/--outage--?after={after}&seconds={OUTAGE_SECONDS}{done}"
    with urlopen(s3.address + query):
        pass


def row(ts: int) -> dict[str, object]:
    return {"id": "k3", "ts": ts, "v": ts}


def ends_soon(began: float) -> bool:
    """Whether that took no longer than it may; judged where nothing else runs."""
    return not MOMENTS or time.monotonic() - began <= WITHIN_SECONDS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("after", AFTER)
def test_the_next_writes_wait_for_no_lock_of_a_write_that_met_an_outage(
    s3: DistantS3, place: Location, other: "subprocess.Popen[str]", after: int
) -> None:
    table = Table(place.uri, place.options)
    begin_outage(s3, after, is_done=after % 2 == 0)
    ends = time.monotonic() + OUTAGE_SECONDS
    with suppress(LakewardenError):
        table.upsert([row(after)])
    time.sleep(max(ends - time.monotonic(), 0.0))
    began = time.monotonic()
    assert other.stdin is not None
    assert other.stdout is not None
    print(json.dumps(row(100 + after)), file=other.stdin, flush=True)
    assert other.stdout.readline() == "1\n"
    assert ends_soon(began)
    began = time.monotonic()
    assert table.upsert([row(200 + after)]).rows_updated == 1
    assert ends_soon(began)
