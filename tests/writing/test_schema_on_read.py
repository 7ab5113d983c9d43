"""Tables whose columns were renamed by Java: what a commit of ours carries on of their history."""

import json

import pyarrow as pa
import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import commit
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.evolved_history import carried_history
from lakewarden.engine.table.schema import SchemaHistory, parse_schema_history
from tests.golden_tables import GoldenTable

NAME = "cow_schema_on_read"
INSTANT = "20991231235959999"


def latest_schema(table: Table) -> dict[str, object]:
    """What the newest commit says of the version its files are in."""
    active = table.timeline()
    newest = active.completed()[-1]
    metadata = commit.decode(active.read(newest), active.path(newest))
    found: dict[str, object] = json.loads(metadata.extra_metadata["latest_schema"])
    return found


def operations_of(table: Table) -> list[str]:
    """What the active writes were."""
    active = table.timeline()
    writes = active.completed()
    return [str(commit.decode(active.read(i), active.path(i)).operation_type) for i in writes]


def rows_without_meta(table: Table) -> list[dict[str, object]]:
    names = [name for name in table.schema.names if not name.startswith("_hoodie_")]
    return sorted(table.read_arrow(names).to_pylist(), key=lambda row: str(row["id"]))


@pytest.fixture
def renamed(golden_copy: GoldenTable) -> Table:
    return Table(str(golden_copy(NAME)))


def test_a_write_to_a_table_with_a_renamed_column_carries_the_history_on(renamed: Table) -> None:
    before, known = rows_without_meta(renamed), latest_schema(renamed)
    renamed.upsert(pa.Table.from_pylist(before[:1]))
    assert latest_schema(renamed) == known
    assert rows_without_meta(renamed) == before
    renamed.delete([str(before[-1]["id"])])
    assert latest_schema(renamed) == known
    renamed.clustering.schedule_and_run()
    assert latest_schema(renamed) == known
    assert rows_without_meta(renamed) == before[:-1]


def test_the_history_outlives_the_archival_of_the_change(renamed: Table) -> None:
    before = rows_without_meta(renamed)
    for _ in range(6):
        renamed.upsert(pa.Table.from_pylist(before[:1]))
    renamed.clean(commits_retained=1)
    renamed.archive(min_commits=2, max_commits=3, commits_retained=1)
    assert "ALTER_SCHEMA" not in operations_of(renamed)
    renamed.upsert(pa.Table.from_pylist(before[:1]))
    assert rows_without_meta(renamed) == before
    versions = renamed.state().history.versions
    assert next(one.names[6] for one in versions if 6 in one.names) == "name"


def test_a_change_that_was_never_committed_renames_nothing(renamed: Table) -> None:
    before = rows_without_meta(renamed)
    renamed.upsert(pa.Table.from_pylist(before[:1]))
    newest = renamed.timeline().completed()[-1].requested
    renamed.rollback(newest)
    storage = renamed.state().storage
    dead = f".hoodie/.schema/{newest}_{newest}.schemacommit"
    document = json.loads(storage.read(dead))
    for field in document["schemas"][0]["fields"]:
        field["name"] = f"new_{field['name']}"
    storage.put(dead, json.dumps(document).encode())
    assert rows_without_meta(renamed) == before


def history_of(*columns: dict[str, object], last: int = 20) -> SchemaHistory:
    schema = {"max_column_id": last, "version_id": 10, "type": "record", "fields": list(columns)}
    return parse_schema_history(json.dumps({"schemas": [schema]}).encode(), "x.schemacommit")


ID = {"id": 5, "name": "id", "optional": True, "type": "string"}
N = {"id": 6, "name": "n", "optional": True, "type": "int"}
BEFORE = pa.schema([("id", pa.string()), ("n", pa.int32())])


def carried(history: SchemaHistory, after: pa.Schema) -> tuple[dict[str, object], list[int]]:
    found = carried_history(history, BEFORE, after, INSTANT)
    assert found is not None
    versions = json.loads(found.content)["schemas"]
    assert versions[0] == json.loads(found.latest)
    return versions[0], [version["version_id"] for version in versions]


def test_added_and_widened_columns_make_a_version_with_ids_that_nobody_had() -> None:
    inner = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
    after = pa.schema(
        [
            ("id", pa.string()),
            ("n", pa.int64()),
            ("s", inner),
            ("m", pa.map_(pa.string(), pa.float64())),
        ]
    )
    latest, versions = carried(history_of(ID, N), after)
    assert versions == [int(INSTANT), 10]
    assert latest["max_column_id"] == 27
    assert latest["fields"] == [
        ID,
        {**N, "type": "long"},
        {
            "id": 21,
            "name": "s",
            "optional": True,
            "type": {
                "type": "record",
                "fields": [
                    {"id": 22, "name": "a", "optional": True, "type": "int"},
                    {
                        "id": 23,
                        "name": "b",
                        "optional": True,
                        "type": {
                            "type": "array",
                            "element_id": 24,
                            "element": "string",
                            "element_optional": True,
                        },
                    },
                ],
            },
        },
        {
            "id": 25,
            "name": "m",
            "optional": True,
            "type": {
                "type": "map",
                "key_id": 26,
                "key": "string",
                "value_id": 27,
                "value": "double",
                "value_optional": True,
            },
        },
    ]


def test_a_column_that_others_added_without_a_history_gets_an_id_where_its_files_are() -> None:
    latest, versions = carried(history_of(ID), BEFORE)
    assert versions == [10]
    assert latest["fields"] == [ID, {**N, "id": 21}]


def test_a_type_that_the_history_has_no_words_for_is_refused() -> None:
    after = pa.schema([*BEFORE, ("t", pa.timestamp("us"))])
    with pytest.raises(InvalidRequest, match="schema on read") as refused:
        carried(history_of(ID, N), after)
    assert refused.value.code == "unsupported_schema_change"


def test_a_table_without_a_history_carries_none_on() -> None:
    assert carried_history(SchemaHistory(), BEFORE, BEFORE, INSTANT) is None
