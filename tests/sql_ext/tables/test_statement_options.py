"""What a statement says of its write: under any name of a setting, and nothing else."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.sql_ext.tables.statement_options import said_options, write_options

PATH = "/lake/orders"


def test_options_are_about_the_write() -> None:
    options = {"lakewarden.storage.key": "k", "hoodie.clean.policy": "a"}
    details = {"write_options": {"path": PATH, "hoodie.upsert.shuffle": 1}, "settings": {"b": "c"}}
    said = said_options(PATH, options, details)
    assert said == {"hoodie.clean.policy": "a", "hoodie.upsert.shuffle": "1"}


def test_older_names_and_those_of_statements_are_known() -> None:
    older = {"hoodie.cleaner.commits.retained": "3"}
    own = {"hoodie.spark.sql.insert.into.operation": "upsert"}
    assert write_options(older | own) == older | own


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("hoodie.cleaner.commits.retaind", "Did you mean 'hoodie.cleaner.commits.retained'?"),
        ("hoodie.spark.sql.insert.operation", "'hoodie.spark.sql.insert.into.operation'?"),
        ("path", "Leave it out."),
    ],
)
def test_what_means_nothing_is_refused(option: str, hint: str) -> None:
    said = said_options(PATH, {}, {"write_options": {option: "/elsewhere"}})
    with pytest.raises(InvalidRequest, match="has no option") as refused:
        write_options(said)
    assert hint in refused.value.now
