"""What the owner of a server allows holds for tables in SQL as well."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.sql_ext.session.permitted import ALLOWED_ROOTS, READ_ONLY
from lakewarden.sql_ext.tables.table_bridge import TableBridge


class Closed(TableBridge):
    """A door that nobody may get through to a session."""

    def _session(self) -> SparkSession:
        raise AssertionError


CLOSED = Closed(context_factory=None)
ONLY_READS = {READ_ONLY: "true"}


def test_nothing_is_changed_where_only_reading_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="DROP TABLE is not allowed here: it changes"):
        CLOSED.check_change("DROP TABLE", [], ONLY_READS)
    with pytest.raises(InvalidRequest, match="The statement is not allowed here: it changes"):
        CLOSED.write_table("append", str(tmp_path), {}, {}, ONLY_READS, 1)
    with pytest.raises(InvalidRequest, match="TRUNCATE TABLE is not allowed here: it changes"):
        CLOSED.truncate_table(str(tmp_path), {}, {}, ONLY_READS)
    with pytest.raises(InvalidRequest, match="The statement is not allowed here: it changes"):
        CLOSED.drop_partitions(str(tmp_path), {}, [], {}, ONLY_READS, if_exists=True)
    with pytest.raises(InvalidRequest, match="The statement is not allowed here: it changes"):
        CLOSED.add_partitions(str(tmp_path), {}, [{"p": "1"}], {}, ONLY_READS, if_not_exists=True)
    with pytest.raises(InvalidRequest, match="CREATE TABLE is not allowed here: it changes"):
        CLOSED.create_table(
            path=str(tmp_path / "new"),
            name="new",
            columns='{"type": "struct", "fields": [{"name": "id", "type": "integer",'
            ' "nullable": true, "metadata": {}}]}',
            partitions=[],
            properties={"primaryKey": "id"},
            must_be_new=True,
            permissions=ONLY_READS,
        )
    with pytest.raises(InvalidRequest, match="ALTER TABLE is not allowed here: it changes"):
        CLOSED.alter_table(str(tmp_path), {}, [], {}, ONLY_READS)
    with pytest.raises(InvalidRequest, match="The statement is not allowed here: it changes"):
        CLOSED.check_partitions(str(tmp_path), {}, {}, ONLY_READS)
    assert not list(tmp_path.iterdir())


def test_tables_are_inside_of_the_allowed_roots(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        CLOSED.describe_table(str(tmp_path), {}, {ALLOWED_ROOTS: str(tmp_path / "lake")})
    assert refused.value.code == "path_not_allowed"
