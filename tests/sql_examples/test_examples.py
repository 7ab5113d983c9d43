"""Every example does what it says, in every client: in one of them each day."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakewarden
from tests.sampling import turns
from tests.sql_examples.clients import Client, Refused, SparkClient, ThriftClient, remote_session
from tests.sql_examples.stories import Step, steps_of
from tests.sql_server import Ports

EXAMPLES = sorted((Path(__file__).parents[2] / "sql_examples").glob("*.sql"))
# The kinds of client, and the group of tests that each has its session from.
GROUPS = {"classic": "spark", "connected": "served", "thrift": "served"}


@pytest.fixture(scope="module")
def classic(spark: SparkSession) -> Client:
    """A session of its own: examples choose a database and declare variables."""
    return SparkClient(lakewarden.enable(spark).newSession())


@pytest.fixture(scope="module")
def connected(server: Ports) -> Iterator[Client]:
    with remote_session(server.connect) as session:
        yield SparkClient(session)


@pytest.fixture(scope="module")
def thrift(server: Ports) -> Iterator[Client]:
    with ThriftClient(server.thrift) as client:
        yield client


@pytest.mark.parametrize(
    ("example", "kind"),
    [
        pytest.param(example, kind, marks=pytest.mark.xdist_group(GROUPS[kind]))
        for example, kind in turns(EXAMPLES, tuple(GROUPS))
    ],
    ids=lambda value: getattr(value, "stem", value),
)
def test_an_example_gives_what_it_says(
    example: Path, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    client: Client = request.getfixturevalue(kind)
    database = f"{kind}_{example.stem}"
    client.ask(f"CREATE DATABASE {database} LOCATION '{tmp_path}/database'")
    client.ask(f"USE spark_catalog.{database}")
    client.ask(f"SET folder={tmp_path}")
    steps = steps_of(example)
    assert any(step.answer or step.refusal or step.is_empty for step in steps)
    for step in steps:
        check(client, step)


def check(client: Client, step: Step) -> None:
    """One statement gives what stands below it."""
    place = f"line {step.line}: {step.statement}"
    if step.refusal is not None:
        with pytest.raises(Refused, match=re.escape(step.refusal)):
            client.ask(step.statement)
        return
    found = client.ask(step.statement)
    if step.is_empty:
        assert not found.rows, f"{place}\n{found}"
    if step.answer is not None:
        assert step.answer.matches(found), f"{place}\nexpected\n{step.answer}\nfound\n{found}"


def test_there_are_enough_examples_to_learn_from() -> None:
    assert len(EXAMPLES) >= 25
