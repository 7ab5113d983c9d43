"""Every procedure keeps the promises that its callers count on."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.declaring.declaration import Procedure
from lakewarden.procedures.registry import PROCEDURES, procedure_named


@pytest.mark.parametrize("one", PROCEDURES.values(), ids=lambda one: one.name)
def test_declarations_are_whole(one: Procedure) -> None:
    assert one.summary
    assert one.columns
    spellings = [
        spelling.replace("_", "").lower()
        for parameter in one.parameters
        for spelling in dict.fromkeys(name.lower().replace("_", "") for name in parameter.spellings)
    ]
    assert len(spellings) == len(set(spellings))
    assert all(parameter.comment for parameter in one.parameters)


@pytest.mark.parametrize(
    "one", [p for p in PROCEDURES.values() if p.is_mutating], ids=lambda one: one.name
)
def test_whatever_changes_a_table_can_be_tried_dry(one: Procedure) -> None:
    assert "dry_run" in [parameter.name for parameter in one.parameters]


def test_names_are_found_in_any_case_and_behind_any_catalog() -> None:
    assert procedure_named("lakewarden.system.CANCEL_PLAN").name == "cancel_plan"
    with pytest.raises(InvalidRequest, match="Did you mean 'cancel_plan'"):
        procedure_named("cancel_plans")


def test_procedures_that_only_hudi_has_are_refused_with_what_to_do() -> None:
    for name in ("hive_sync", "system.RUN_BOOTSTRAP", "hdfs_parquet_import"):
        with pytest.raises(InvalidRequest) as refused:
            procedure_named(name)
        assert refused.value.code == "only_hudis_procedure"
        assert "report" not in refused.value.now
