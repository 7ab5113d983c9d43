"""Whatever is sent, there is one clear error, the session lives, and nothing is changed."""

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.procedures.registry import PROCEDURES
from tests.sampling import sample
from tests.sql_ext.conftest import Refused

pytestmark = pytest.mark.xdist_group("spark")

STATEMENTS = 2000
EVERY = 7
NASTY = (
    "NULL", "''", "'\\\\'", "'a''b'", "1", "-1", "1e400", "9999999999999999999999", "true",
    "map('a', 'b')", "map('hoodie.table.name', 'x')", "array(1)", "array()", "DATE '2026-01-01'",
    "TIMESTAMP '2026-01-01 00:00:00'", "X'00ff'", "INTERVAL 1 DAY", "upper('x')", "1/0", "'k=v,k'",
    "'$(reboot)'", "'; DROP TABLE t; --'", "'../../../etc/passwd'", "'/etc'", "'no.such.t'", "'`'",
    "'20261118101500123'", "20261118101500123", "'x y'", "'%00'", "'ä\\u0000'", "struct(1)",
)  # fmt: skip
WORDS = (
    "CREATE", "DROP", "SHOW", "REFRESH", "INDEX", "INDEXES", "RUN", "SCHEDULE", "COMPACTION", "ON",
    "TABLE", "FROM", "IF", "NOT", "EXISTS", "USING", "OPTIONS", "(", ")", ",", "=", "=>", ".", ";",
    "AT", "LIMIT", "i", "t", "`a b`", "'/no/such'", "1", "-", "CALL", "BEGIN", "END", "EXPLAIN",
    "/*", "*/", "--", "'", "\"", "\n", "record_index", "column_stats", "?", ":x", "\\", "help",
)  # fmt: skip


def calls(chance: random.Random, place: str) -> Iterator[str]:
    while True:
        one = chance.choice(list(PROCEDURES.values()))
        count = chance.randrange(len(one.parameters) + 1)
        names = [chance.choice(each.spellings) for each in chance.sample(one.parameters, count)]
        given = [f"{name} => {chance.choice(NASTY)}" for name in names if name != "dry_run"]
        if chance.random() < 0.5:
            given += [f"path => '{place}'"]
        if one.is_mutating:
            given += ["dry_run => true"]
        yield f"CALL {chance.choice(('', 'system.', 'lakewarden.'))}{one.name}({', '.join(given)})"


def soups(chance: random.Random) -> Iterator[str]:
    beginnings = (
        "CREATE INDEX",
        "DROP INDEX",
        "SHOW INDEXES",
        "REFRESH INDEX",
        "RUN COMPACTION ON",
    )
    while True:
        words = chance.choices(WORDS, k=chance.randrange(12))
        yield " ".join([chance.choice(beginnings), *words])


def fingerprint(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        digest.update(str(file).encode() + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()


def test_generated_statements_change_nothing(sql_session: SparkSession, orders: Path) -> None:
    chance = random.Random(7)
    before = fingerprint(orders)
    sources = (calls(chance, str(orders)), soups(chance))
    defects = []
    statements = [next(sources[number % 2]) for number in range(STATEMENTS)]
    for statement in sample(statements, EVERY):
        try:
            sql_session.sql(statement).collect()
        except Exception as error:
            text = str(error)
            if not isinstance(error, PySparkException):
                defects.append((statement, text[:300]))
                continue
            if "LAKEWARDEN_UNEXPECTED" in text or "Traceback" in text or not error.getCondition():
                defects.append((statement, text.splitlines()[0]))
    assert not defects, "\n".join(f"{statement}\n    {text}" for statement, text in defects)
    assert fingerprint(orders) == before
    assert sql_session.sql("SELECT 1").collect() == [(1,)]


@pytest.mark.parametrize(
    ("call", "state"),
    [
        ("show_plans(path => '/no/such')", "42000"),
        ("show_plans(table => '')", "42000"),
        ("show_plans(table => 'a.b.c.d')", "42P01"),
        ("show_plans(limit => 'few', path => '/no')", "42804"),
        ("show_plans(limit => map(1, 2), path => '/no')", "42804"),
        ("show_plans('/a', path => '/b')", "42000"),
        ("run_compaction(op => 'scheduel', path => '{orders}')", "42804"),
        ("cancel_plan(path => '{orders}', instant => 'never')", "42000"),
        (
            "run_compaction(op => 'schedule', path => '{orders}', options => 'no.such.key=1')",
            "42000",
        ),
        ("show_plans(path => (SELECT 'x'))", "42000"),
    ],
)
def test_errors_have_a_state(refused: Refused, orders: Path, call: str, state: str) -> None:
    error = refused(f"CALL {call}".replace("{orders}", str(orders)))
    assert error.getSqlState() == state
    assert error.getCondition()
