"""Each form of a statement about indexes that Hudi's users type works, or says what to do."""

from collections.abc import Iterator

import pytest

from tests.sql_ext.conftest import Refused, Run

pytestmark = pytest.mark.xdist_group("spark")

# What is created, and the partition of the metadata table that it is.
FORMS = {
    "INDEX by_name ON forms (name)": "secondary_index_by_name",
    "INDEX by_name ON forms USING secondary_index (name)": "secondary_index_by_name",
    "INDEX by_day ON TABLE forms USING column_stats(ts)"
    " OPTIONS(expr='from_unixtime', format='yyyy-MM-dd')": "expr_index_by_day",
    "INDEX by_low ON forms USING bloom_filters(name) OPTIONS(expr='lower')": "expr_index_by_low",
    "INDEX by_up ON forms USING column_stats(name OPTIONS(func='upper'))": "expr_index_by_up",
    "INDEX filters ON forms USING bloom_filters(id)": "bloom_filters",
    "INDEX IF NOT EXISTS filters ON forms USING bloom_filters (id)": "bloom_filters",
}
REFUSED = {
    "CREATE INDEX record_index ON forms (id)": ("INDEX_EXISTS", "IF NOT EXISTS"),
    "CREATE INDEX of_key ON forms USING record_index (name)": ("NOT_THE_RECORD_KEY", "Name"),
    "CREATE INDEX i ON forms (nam)": ("UNKNOWN_COLUMN", "Did you mean 'name'?"),
    "CREATE INDEX i ON forms (name, p)": ("BAD_INDEX_COLUMNS", "one other column"),
    "CREATE INDEX i ON forms USING lucene (name)": ("UNKNOWN_INDEX_TYPE", "secondary_index"),
    "CREATE INDEX i ON forms USING column_stats(ts) OPTIONS(expr='from_unixtim')": (
        "UNKNOWN_INDEX_FUNCTION",
        "Did you mean 'from_unixtime'?",
    ),
    "CREATE INDEX i ON forms USING column_stats(ts) OPTIONS(expr='from_unixtime', days='1')": (
        "UNKNOWN_INDEX_OPTION",
        "Leave it out",
    ),
    "CREATE INDEX i ON forms USING secondary_index(name) OPTIONS(expr='lower')": (
        "NO_INDEX_OF_EXPRESSIONS",
        "USING bloom_filters",
    ),
    "CREATE INDEX `a-b` ON forms (name)": ("BAD_INDEX_NAME", "letters"),
    "DROP INDEX nope ON forms": ("NO_INDEX", "record_index"),
    "REFRESH INDEX nope ON forms": ("NO_INDEX", "record_index"),
    "CALL run_indexing(table => 'forms', op => 'schedule')": ("BAD_ARGUMENT", "index_name"),
    "CALL run_indexing(table => 'forms', op => 'sometime')": ("BAD_ARGUMENT", "schedule"),
    "CALL build_index(table => 'forms', index_name => 'i', columns => 'name', op => 'sometime')": (
        "BAD_ARGUMENT",
        "resume",
    ),
    "CALL build_index(table => 'forms', index_name => 'i', columns => 'name', op => 'resume')": (
        "NO_INDEXING_PLAN",
        "scheduleAndExecute",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def forms(run: Run) -> Iterator[None]:
    """A table with a record index and a few rows, which each test leaves as it was."""
    run(
        "CREATE TABLE forms (id STRING, name STRING, ts BIGINT, p STRING) USING lakewarden"
        " PARTITIONED BY (p) TBLPROPERTIES (primaryKey = 'id', type = 'mor')"
    )
    run("INSERT INTO forms VALUES ('a', 'Ann', 0, 'x'), ('b', 'Bob', 86400, 'y')")
    run("CREATE INDEX record_index ON forms (id)")
    yield
    run("DROP TABLE forms")


def states(run: Run) -> dict[str, str]:
    """The indexes by their partitions, with the state of each."""
    return {row.partition_name: row.state for row in run("SHOW INDEXES FROM forms")}


@pytest.mark.parametrize(("form", "partition"), FORMS.items(), ids=str)
def test_an_index_is_created_shown_refreshed_and_dropped(
    run: Run, form: str, partition: str
) -> None:
    (built,) = run(f"CREATE {form}")
    assert (built.partition_name, built.state) == (partition, "READY")
    assert states(run)[partition] == "READY"
    (row,) = (
        row
        for row in run("SELECT * FROM lakewarden_indexes('forms')")
        if row.partition_name == partition
    )
    assert (row.lag_count, row.done_ratio, row.waits_for, row.reason) == (0, 1.0, None, None)
    (again,) = run(f"REFRESH INDEX {row.index_name} ON forms")
    assert (again.message, again.state) == ("It was rebuilt.", "READY")
    assert partition in run(f"DROP INDEX {row.index_name} ON forms")[0].partition_name
    assert partition not in states(run)
    (gone,) = run(f"DROP INDEX IF EXISTS {row.index_name} ON forms")
    assert "nothing to do" in gone.message


def test_a_record_index_for_each_partition_takes_the_place_of_the_global_one(run: Run) -> None:
    run("DROP INDEX record_index ON forms")
    run("CREATE INDEX record_index ON forms (id) OPTIONS(isPartitioned = 'true')")
    (row,) = (row for row in run("SHOW INDEXES FROM forms") if row.index_name == "record_index")
    assert (row.state, row.file_groups_count, row.entries_count) == ("READY", 2, 2)
    run("DROP INDEX record_index ON forms")
    assert run("CREATE INDEX IF NOT EXISTS record_index ON forms (id)")[0].records_count == 2
    (there,) = run("CREATE INDEX IF NOT EXISTS record_index ON forms (id)")
    assert "already" in there.message


def test_run_indexing_schedules_executes_or_does_both(run: Run) -> None:
    named = "table => 'forms', index_name => 'by_name', columns => 'name'"
    (tried,) = run(f"CALL run_indexing({named}, op => 'schedule', dry_run => true)")
    assert "would be built" in tried.message
    (plan,) = run(f"CALL run_indexing({named}, op => 'schedule')")
    assert states(run)["secondary_index_by_name"] == "PLANNED"
    assert [row.service for row in run("CALL show_plans(table => 'forms')")] == ["indexing"]
    (tried,) = run("CALL run_indexing(table => 'forms', op => 'execute', dry_run => true)")
    assert (tried.timestamp, tried.message) == (plan.timestamp, "Its index would be built.")
    (done,) = run(f"CALL run_indexing(table => 'forms', instants => '{plan.timestamp}')")
    assert done.message == "Built: secondary_index_by_name."
    assert states(run)["secondary_index_by_name"] == "READY"
    run("DROP INDEX by_name ON forms")
    run(f"CALL run_indexing({named}, op => 'scheduleAndExecute')")
    assert states(run)["secondary_index_by_name"] == "READY"
    run("DROP INDEX by_name ON forms")
    (none,) = run("CALL run_indexing(table => 'forms', op => 'execute')")
    assert none.message == "No indexing is pending."


def test_build_index_goes_in_steps_and_is_cancelled_or_dropped_on_the_way(run: Run) -> None:
    named = "table => 'forms', index_name => 'by_name', columns => 'name'"
    (plan,) = run(f"CALL build_index({named}, op => 'schedule')")
    (ended,) = run(f"CALL cancel_plan(table => 'forms', instant => '{plan.instant}')")
    assert ended.outcome == "cancelled"
    assert "secondary_index_by_name" not in states(run)
    run(f"CALL build_index({named}, op => 'schedule')")
    assert run(f"CALL build_index({named}, op => 'resume')")[0].state == "READY"
    run("DROP INDEX by_name ON forms")
    run(f"CALL build_index({named}, op => 'schedule')")
    run("DROP INDEX by_name ON forms")
    assert "secondary_index_by_name" not in states(run)
    assert run("CALL show_plans(table => 'forms')") == []


def test_a_record_index_that_a_secondary_one_needs_is_not_dropped(
    run: Run, refused: Refused
) -> None:
    run("CREATE INDEX by_name ON forms (name)")
    error = refused("DROP INDEX record_index ON forms")
    assert error.getCondition() == "LAKEWARDEN_INDEX_IS_NEEDED"
    assert "Drop by_name first" in str(error)
    run("DROP INDEX by_name ON forms")


@pytest.mark.parametrize(("statement", "expected"), REFUSED.items(), ids=str)
def test_each_refusal_says_what_to_do(
    refused: Refused, statement: str, expected: tuple[str, str]
) -> None:
    code, remedy = expected
    error = refused(statement)
    assert error.getCondition() == f"LAKEWARDEN_{code}"
    assert remedy in str(error)
