"""The settings of a clean, as Hudi infers and checks them."""

import pytest

from lakewarden.engine.formats.instant_metadata.clean import CleanPolicy
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.retention.settings import CleanRetention, retention_of

COMMITS = "hoodie.clean.commits.retained"
HOURS = "hoodie.cleaner.hours.retained"
VERSIONS = "hoodie.cleaner.fileversions.retained"


def of(**given: object) -> CleanRetention:
    arguments = {name.replace("__", "."): value for name, value in given.items()}
    return retention_of(Settings.of(arguments=arguments))


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({}, CleanPolicy.KEEP_LATEST_COMMITS),
        ({COMMITS: 3}, CleanPolicy.KEEP_LATEST_COMMITS),
        ({HOURS: 3}, CleanPolicy.KEEP_LATEST_BY_HOURS),
        ({VERSIONS: 3}, CleanPolicy.KEEP_LATEST_FILE_VERSIONS),
        ({VERSIONS: 3, HOURS: 2}, CleanPolicy.KEEP_LATEST_COMMITS),
        (
            {VERSIONS: 3, "hoodie.cleaner.policy": "keep_latest_by_hours"},
            CleanPolicy.KEEP_LATEST_BY_HOURS,
        ),
    ],
)
def test_the_policy_is_the_named_one_or_the_one_whose_number_alone_is_set(
    given: dict[str, object], policy: CleanPolicy
) -> None:
    assert of(**given).policy is policy


def test_a_pair_that_would_archive_what_is_not_cleaned_is_refused_by_both_names() -> None:
    with pytest.raises(InvalidRequest) as refused:
        of(**{COMMITS: 20})
    assert refused.value.code == "wrong_retention"
    text = str(refused.value)
    assert "hoodie.clean.commits.retained=20" in text
    assert "hoodie.keep.min.commits=20" in text


def test_other_policies_have_no_such_pair() -> None:
    assert of(**{VERSIONS: 100}).versions == 100
