"""UPDATE, DELETE, MERGE and INSERT OVERWRITE beside a plain model of the table."""

from collections.abc import Callable
from pathlib import Path

import pytest

import lakewarden
from tests.sampling import turns
from tests.sql_ext.conftest import Refused, Run
from tests.sql_ext.tables.conftest import Make, Row

pytestmark = pytest.mark.xdist_group("spark")

Stored = Callable[[str], list[Row]]
BEGINNING = [(1, "a", 10, "Oslo"), (2, "b", 20, "Rome"), (3, "c", 30, "Oslo")]
SOURCE = "(SELECT * FROM VALUES {} AS s(id, name, qty, city)) s"
WHOLE = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


def merge(rows: str, clauses: str, on: str = "t.id = s.id") -> str:
    return f"MERGE INTO {{t}} t USING {SOURCE.format(rows)} ON {on} {clauses}"


# Each statement, and what it makes of the three rows.
STORY = [
    (
        # A subquery over the table itself, in the values and in the condition.
        "UPDATE {t} SET qty = qty + (SELECT max(qty) FROM {t}), name = upper(name)"
        " WHERE id IN (SELECT id FROM {t} WHERE city = 'Oslo')",
        [(1, "A", 40, "Oslo"), (2, "b", 20, "Rome"), (3, "C", 60, "Oslo")],
    ),
    (
        "DELETE FROM {t} WHERE length(name) = 1 AND id % 2 = 0",
        [(1, "A", 40, "Oslo"), (3, "C", 60, "Oslo")],
    ),
    (
        merge(
            "(1, 'z', 5L, 'Oslo'), (7, 'n', 70L, 'Rome'), (3, 'x', 0L, 'Oslo')",
            f"WHEN MATCHED AND s.qty = 0 THEN DELETE {WHOLE}",
        ),
        [(1, "z", 5, "Oslo"), (7, "n", 70, "Rome")],
    ),
    (
        # The row leaves its partition.
        "UPDATE {t} SET city = 'Bonn' WHERE id = 1",
        [(1, "z", 5, "Bonn"), (7, "n", 70, "Rome")],
    ),
    (
        merge(
            "(12, 'i', 5L, 'Bonn')",
            "WHEN NOT MATCHED THEN INSERT (id, city, name) VALUES (s.id, s.city, 'new')"
            " WHEN NOT MATCHED BY SOURCE AND t.id = 7 THEN UPDATE SET name = 'kept'"
            " WHEN NOT MATCHED BY SOURCE THEN DELETE",
        ),
        [(7, "kept", 70, "Rome"), (12, "new", None, "Bonn")],
    ),
    (
        merge("(13, 'i', 5L, 'Bonn'), (12, 'i', 5L, 'Bonn')", "WHEN NOT MATCHED THEN INSERT *"),
        [(7, "kept", 70, "Rome"), (12, "new", None, "Bonn"), (13, "i", 5, "Bonn")],
    ),
    (
        "INSERT INTO {t} SELECT id + 100, name, qty, city FROM {t} WHERE id = 7",
        [
            (7, "kept", 70, "Rome"),
            (12, "new", None, "Bonn"),
            (13, "i", 5, "Bonn"),
            (107, "kept", 70, "Rome"),
        ],
    ),
    ("INSERT OVERWRITE {t} VALUES (9, 'nine', 90, 'Rome')", [(9, "nine", 90, "Rome")]),
    ("DELETE FROM {t}", []),
]


@pytest.mark.parametrize(("type", "partitioned"), turns(("cow", "mor"), (True, False)))
def test_statements_do_to_a_table_what_they_say(
    run: Run, make: Make, stored: Stored, type: str, *, partitioned: bool
) -> None:
    name = make(type, partitioned=partitioned)
    assert stored(name) == BEGINNING
    for statement, left in STORY:
        assert run(statement.format(t=name)) == []
        assert stored(name) == left, statement
    assert run(f"SELECT * FROM {name}") == []


def test_one_partition_is_overwritten(run: Run, make: Make, stored: Stored) -> None:
    name = make()
    run(f"INSERT OVERWRITE {name} PARTITION (city = 'Rome') VALUES (8, 'eight', 80)")
    assert stored(name) == [BEGINNING[0], BEGINNING[2], (8, "eight", 80, "Rome")]
    run(f"INSERT OVERWRITE {name} PARTITION (city = 'Oslo') SELECT 1, 'x', 1L WHERE false")
    assert stored(name) == [(8, "eight", 80, "Rome")]


def test_partitions_are_overwritten_by_their_rows(run: Run, make: Make, stored: Stored) -> None:
    name = make()
    mode = "spark.sql.sources.partitionOverwriteMode"
    run(f"SET {mode} = dynamic")
    try:
        run(f"INSERT OVERWRITE {name} VALUES (8, 'eight', 80, 'Rome')")
    finally:
        run(f"RESET {mode}")
    assert stored(name) == [BEGINNING[0], BEGINNING[2], (8, "eight", 80, "Rome")]


def test_an_insert_is_an_upsert_where_it_is_set_or_rows_are_ordered(
    run: Run, make: Make, stored: Stored
) -> None:
    plain = make(rows="(1, 'a', 1, 'Oslo')")
    run(f"INSERT INTO {plain} VALUES (1, 'b', 2, 'Oslo')")
    assert len(stored(plain)) == 2
    setting = "hoodie.spark.sql.insert.into.operation"
    run(f"SET {setting} = upsert")
    try:
        chosen = make(rows="(1, 'a', 1, 'Oslo')")
        run(f"INSERT INTO {chosen} VALUES (1, 'b', 2, 'Oslo')")
    finally:
        run(f"RESET {setting}")
    ordered = make(rows="(1, 'a', 1, 'Oslo')", properties="orderingFields = 'qty'")
    run(f"INSERT INTO {ordered} VALUES (1, 'b', 2, 'Oslo')")
    assert stored(chosen) == stored(ordered) == [(1, "b", 2, "Oslo")]


def test_what_hudi_has_in_front_of_rows_is_not_inserted(
    run: Run, make: Make, stored: Stored
) -> None:
    name, other = make(), make(rows="")
    run(f"INSERT INTO {other} SELECT * FROM {name} WHERE id < 3")
    run(f"INSERT INTO {other} BY NAME SELECT * FROM {name} WHERE id = 3")
    assert stored(other) == BEGINNING


REFUSED = [
    ("ALTER TABLE {t} ADD COLUMN more INT DEFAULT 3", "UNSUPPORTED_ALTER_TABLE"),
    ("UPDATE {t} SET id = 5 WHERE id = 1", "KEY_CHANGED"),
    (merge("(1, 'x', 1L, 'Oslo'), (1, 'y', 2L, 'Oslo')", WHOLE), "REPEATED_KEYS"),
    (
        merge(
            "(1, 'x', 1L, 'Oslo'), (1, 'y', 2L, 'Oslo')",
            "WHEN MATCHED AND s.qty = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET *",
        ),
        "REPEATED_KEYS",
    ),
    (
        # The condition is not about the key alone.
        merge("(1, 'x', 9L, 'Oslo'), (1, 'y', 8L, 'Oslo')", WHOLE, "t.id = s.id AND t.qty > 0"),
        "1 in city=Oslo",
    ),
    (merge("(8, 'x', 1L, 'Oslo'), (8, 'y', 2L, 'Oslo')", WHOLE), "REPEATED_KEYS"),
    (
        merge("(1, 'x', 1L, 'Oslo')", "WHEN NOT MATCHED THEN INSERT *", "t.id = s.id AND false"),
        "KEY_EXISTS",
    ),
    ("INSERT INTO {t} (id, city) VALUES ('x', 'Rome')", "CANNOT_SAFELY_CAST"),
    ("INSERT INTO {t} VALUES (1)", "NOT_ENOUGH_DATA_COLUMNS"),
    ("INSERT INTO {t} VALUES (NULL, 'x', 1, 'Oslo')", "LAKEWARDEN_"),
    ("UPDATE {t} SET qty = CAST(raise_error('no quantity') AS BIGINT)", "no quantity"),
    ("UPDATE {t} SET nothing = 1", "UNRESOLVED_COLUMN"),
    ("INSERT OVERWRITE {t} PARTITION (city = NULL) VALUES (1, 'x', 1)", "UNSUPPORTED_OVERWRITE"),
]
# INSERT has options since Spark 4.0.
REFUSED_OPTIONS = [
    (
        "INSERT INTO {t} WITH ('hoodie.parquet.max.file.siz' = '1') VALUES (1, 'x', 1, 'Rome')",
        "LAKEWARDEN_UNKNOWN_OPTION] Lakewarden has no option"
        " 'hoodie.parquet.max.file.siz'. Lakewarden refuses unknown options,"
        " so that a typing error does no harm."
        " Did you mean 'hoodie.parquet.max.file.size'? SQLSTATE: 42000",
    ),
    (
        "INSERT OVERWRITE {t} WITH ('hoodie.clean.polcy' = 'x') VALUES (1, 'x', 1, 'Rome')",
        "Did you mean 'hoodie.clean.policy'?",
    ),
]


@pytest.mark.parametrize("statements", [REFUSED, REFUSED_OPTIONS], ids=["values", "options"])
def test_what_a_table_can_not_do_changes_nothing(
    refused: Refused, make: Make, stored: Stored, statements: list[tuple[str, str]]
) -> None:
    name = make()
    for statement, condition in statements:
        assert condition in str(refused(statement.format(t=name))), statement
        assert stored(name) == BEGINNING, statement


def test_an_update_that_merging_would_undo_is_refused(
    refused: Refused, make: Make, stored: Stored
) -> None:
    name = make(properties="orderingFields = 'qty'")
    assert "ORDERING_LOWERED" in str(refused(f"UPDATE {name} SET qty = 1 WHERE id = 3"))
    assert stored(name) == BEGINNING


TWICE = (
    "(1, 'old', 40L, 'Oslo'), (1, 'new', 50L, 'Oslo'),"
    " (9, 'old', 1L, 'Rome'), (9, 'new', 2L, 'Rome')"
)


@pytest.mark.parametrize("on", ["t.id = s.id", "s.city = t.city AND s.id <=> t.id"])
@pytest.mark.parametrize("clauses", [WHOLE, "WHEN NOT MATCHED THEN INSERT *"])
def test_a_merge_by_the_key_takes_the_newest_row_of_its_source(
    run: Run, make: Make, stored: Stored, on: str, clauses: str
) -> None:
    name = make(properties="orderingFields = 'qty'")
    run(merge(TWICE, clauses, on).format(t=name))
    updated = (1, "new", 50, "Oslo") if clauses == WHOLE else BEGINNING[0]
    assert stored(name) == [updated, *BEGINNING[1:], (9, "new", 2, "Rome")]


def test_a_merge_without_a_newest_row_is_refused_with_the_keys(
    refused: Refused, make: Make, stored: Stored
) -> None:
    name = make(properties="orderingFields = 'qty'")
    for rows, key in (
        ("(1, 'x', 50L, 'Oslo'), (1, 'y', 50L, 'Oslo')", "1 in city=Oslo"),
        ("(8, 'x', 50L, 'Rome'), (8, 'y', 50L, 'Rome')", "8 in city=Rome"),
    ):
        reported = str(refused(merge(rows, WHOLE).format(t=name)))
        assert "REPEATED_KEYS" in reported
        assert key in reported
        assert stored(name) == BEGINNING


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE", "RECORD_INDEX", "BUCKET"])
@pytest.mark.parametrize("type", ["cow", "mor"])
def test_rows_move_between_partitions_whatever_index_there_is(
    run: Run, refused: Refused, make: Make, stored: Stored, type: str, index: str
) -> None:
    name = make(type, properties=f"'hoodie.index.type' = '{index}'")
    run(f"UPDATE {name} SET city = if(city = 'Oslo', 'Rome', 'Oslo')")
    moved = [(1, "a", 10, "Rome"), (2, "b", 20, "Oslo"), (3, "c", 30, "Rome")]
    assert stored(name) == moved
    run(
        merge(
            "(2, 'z', 5L, 'Bonn'), (3, 'y', 0L, 'Oslo')",
            f"WHEN MATCHED AND s.qty = 0 THEN DELETE {WHOLE}",
        ).format(t=name)
    )
    assert stored(name) == [moved[0], (2, "z", 5, "Bonn")]
    run(f"DELETE FROM {name} WHERE city = 'Rome'")
    assert stored(name) == [(2, "z", 5, "Bonn")]


def test_a_row_that_moves_leaves_the_row_of_its_key_elsewhere_alone(
    run: Run, refused: Refused, make: Make, stored: Stored
) -> None:
    name = make(rows="(1, 'a', 1, 'Oslo'), (1, 'b', 2, 'Rome')")
    run(f"UPDATE {name} SET city = 'Bonn' WHERE city = 'Oslo'")
    left = [(1, "a", 1, "Bonn"), (1, "b", 2, "Rome")]
    assert stored(name) == left
    for city, code in (("Rome", "KEY_EXISTS"), ("Cork", "REPEATED_KEYS")):
        where = "WHERE city = 'Bonn'" if city == "Rome" else ""
        reported = str(refused(f"UPDATE {name} SET city = '{city}' {where}"))
        assert code in reported
        assert f"1 in city={city}" in reported
        assert stored(name) == left


def test_explain_changes_nothing(run: Run, make: Make, stored: Stored) -> None:
    name = make()
    (reported,) = run(f"EXPLAIN DELETE FROM {name} WHERE id = 1")
    assert "Lakewarden delete" in reported[0]
    assert stored(name) == BEGINNING


def test_an_update_is_not_lost_between_reading_and_writing(
    run: Run, refused: Refused, make: Make, stored: Stored, tmp_path: Path, sql_session: object
) -> None:
    name = make(rows="(1, 'a', 10, 'Oslo')")
    path = str(tmp_path / name)

    def meddled(qty: int) -> int:
        # A worker computes the new value, and somebody else is quicker.
        lakewarden.Table(path).upsert([{"id": 1, "name": "other", "qty": 11, "city": "Oslo"}])
        return qty + 100

    sql_session.udf.register("meddled", meddled, "bigint")  # type: ignore[attr-defined]
    assert "CONFLICT" in str(refused(f"UPDATE {name} SET qty = meddled(qty) WHERE id = 1"))
    assert stored(name) == [(1, "other", 11, "Oslo")]
