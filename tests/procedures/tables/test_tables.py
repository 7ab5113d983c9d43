"""Properties of a table, and the settings that hold for it."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.caller import PlainCaller
from lakewarden.table import Table
from tests.procedures.calls import call, call_one

KEY = "hoodie.clean.commits.retained"


def test_all_properties_are_shown_as_they_are_stored(path: str) -> None:
    rows = call("show_table_properties", path=path, limit=1000)
    assert {row["key"]: row["value"] for row in rows} == dict(Table(path).properties)
    (row,) = call("show_table_properties", path=path, filter="key = 'hoodie.table.type'")
    assert row["value"] == "MERGE_ON_READ"


def test_an_argument_wins_over_the_session_and_that_over_the_default(path: str) -> None:
    session = PlainCaller(settings={KEY: "7"})
    default = call_one("show_config", path=path, key=KEY)
    assert (default["origin"], default["value"]) == ("default", default["default"])
    (row,) = call("show_config", path=path, key=KEY, caller=session)
    assert (row["value"], row["origin"], row["default"]) == ("7", "session", default["default"])
    (row,) = call("show_config", path=path, key=KEY, caller=session, options=f"{KEY}=5")
    assert (row["value"], row["origin"]) == ("5", "argument")
    (row,) = call("show_config", key=KEY, caller=session)
    assert (row["value"], row["origin"]) == ("7", "session")


def test_the_environment_is_looked_at_before_the_default(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOODIE_CLEAN_COMMITS_RETAINED", "9")
    for named in ({"path": path}, {}):
        (row,) = call("show_config", key=KEY, **named)
        assert (row["value"], row["origin"]) == ("9", "environment")
    (row,) = call("show_config", key=KEY, caller=PlainCaller(settings={KEY: "7"}))
    assert (row["value"], row["origin"]) == ("7", "session")
    monkeypatch.setenv("HOODIE_CLEAN_COMMITS_RETAINED", "")
    assert call_one("show_config", path=path, key=KEY)["origin"] == "default"


def test_what_the_environment_sets_holds_for_writes(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOODIE_LOGFILE_DATA_BLOCK_FORMAT", "nonsense")
    with pytest.raises(InvalidRequest, match="nonsense"):
        Table(path).upsert(Table(path).read_arrow())


def test_a_value_that_makes_no_sense_is_shown_with_what_is_wrong() -> None:
    (row,) = call("show_config", key=KEY, caller=PlainCaller(settings={KEY: "many"}))
    assert (row["value"], row["origin"]) == ("many", "session")
    assert "Not valid" in row["description"]


def test_settings_are_found_by_a_part_of_their_name() -> None:
    rows = call("show_config", key="retained")
    assert KEY in {row["key"] for row in rows}
    assert call("show_config", key="no such thing") == []
    assert len(call("show_config")) > 100


def test_an_option_that_means_nothing_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest, match="no option"):
        call("show_config", path=path, options="hoodie.no.such=1")
