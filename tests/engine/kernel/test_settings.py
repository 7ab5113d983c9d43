"""Settings: precedence of layers, aliases, and errors that help."""

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import (
    Origin,
    Resolved,
    Setting,
    Settings,
    by_keyword,
    flag,
    one_of,
    refuse_unknown,
    whole_number,
)

RETAINED = Setting(
    "hoodie.clean.commits.retained",
    10,
    whole_number,
    "How many commits a clean keeps",
    aliases=("hoodie.cleaner.commits.retained",),
)
AUTOMATIC = Setting("hoodie.clean.automatic", True, flag, "Whether writes clean")
POLICY = Setting("policy", "EAGER", one_of("EAGER", "LAZY"), "What happens to failed writes")


def test_the_first_layer_that_has_a_value_wins_and_is_named() -> None:
    layers = {
        "arguments": {RETAINED.key: 1},
        "session": {RETAINED.key: "2"},
        "table": {RETAINED.key: "3"},
        "environment": {RETAINED.key: "4"},
    }
    found = []
    for name in list(layers):
        found.append(Settings.of(**layers).resolve(RETAINED))
        del layers[name]
    found.append(Settings.of(**layers).resolve(RETAINED))
    assert [(answer.value, answer.origin) for answer in found] == [
        (1, Origin.ARGUMENT),
        (2, Origin.SESSION),
        (3, Origin.TABLE),
        (4, Origin.ENVIRONMENT),
        (10, Origin.DEFAULT),
    ]


def test_an_alias_is_found_and_named() -> None:
    settings = Settings.of(table={"hoodie.cleaner.commits.retained": "7"})
    assert settings.resolve(RETAINED) == Resolved(
        7, Origin.TABLE, "hoodie.cleaner.commits.retained"
    )


@pytest.mark.parametrize(
    ("given", "expected"), [(True, True), (False, False), ("TRUE", True), ("off", False)]
)
def test_flags_come_as_booleans_and_as_words(given: object, expected: bool) -> None:
    assert Settings.of(arguments={AUTOMATIC.key: given})[AUTOMATIC] is expected


def test_words_are_taken_in_any_case() -> None:
    assert Settings.of(session={"policy": "lazy"})[POLICY] == "LAZY"


@pytest.mark.parametrize(
    ("setting", "text"), [(RETAINED, "-1"), (RETAINED, "ten"), (AUTOMATIC, "perhaps"), (POLICY, "")]
)
def test_a_bad_value_is_named_with_what_would_do(setting: Setting[object], text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Settings.of(arguments={setting.key: text})[setting]
    assert caught.value.code == "bad_setting"
    assert setting.key in str(caught.value)
    assert repr(setting.default) in str(caught.value)


def test_an_unknown_option_names_the_nearest_known_one() -> None:
    with pytest.raises(InvalidRequest, match=r"Did you mean 'hoodie\.clean\.automatic'"):
        refuse_unknown(["hoodie.clean.automatc"], [RETAINED, AUTOMATIC])


def test_an_option_that_is_like_no_other_is_not_taken_for_a_misspelt_one() -> None:
    with pytest.raises(InvalidRequest, match=r"Leave it out") as caught:
        refuse_unknown(["hoodie.upsert.shuffle.parallelism"], [RETAINED, AUTOMATIC])
    assert "Did you mean" not in str(caught.value)


def test_known_options_pass_under_every_name() -> None:
    refuse_unknown([*RETAINED.names, AUTOMATIC.key], [RETAINED, AUTOMATIC])


def test_a_keyword_is_the_end_of_a_key() -> None:
    options = by_keyword({"commits_retained": 3, "clean_automatic": False}, [RETAINED, AUTOMATIC])
    assert options == {RETAINED.key: 3, AUTOMATIC.key: False}


def test_a_keyword_that_several_keys_end_in_is_refused() -> None:
    other = Setting("hoodie.archive.automatic", True, flag, "Whether writes archive")
    with pytest.raises(
        InvalidRequest, match=r"hoodie\.archive\.automatic, hoodie\.clean"
    ) as caught:
        by_keyword({"automatic": True}, [AUTOMATIC, other])
    assert caught.value.code == "ambiguous_option"


def test_a_keyword_means_the_operations_own_setting_first() -> None:
    other = Setting("hoodie.archive.automatic", True, flag, "Whether writes archive")
    found = by_keyword({"automatic": True}, [AUTOMATIC, other], own=[other])
    assert found == {other.key: True}


def test_an_unknown_keyword_names_the_nearest() -> None:
    with pytest.raises(InvalidRequest, match="Did you mean 'commits_retained'"):
        by_keyword({"commits_retain": 3}, [RETAINED])
