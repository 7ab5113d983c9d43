"""Arguments reach a procedure by position, by any spelling of their name, and in near types."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import pytest

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.procedures.binding import bind, invoke
from lakewarden.procedures.declaring.caller import Caller, PlainCaller
from lakewarden.procedures.declaring.declaration import (
    Also,
    Call,
    DryRun,
    Limit,
    Options,
    procedure,
)
from lakewarden.procedures.declaring.permissions import Permissions


@procedure("sample", is_mutating=True)
class Sample(Call):
    """A procedure that gives its arguments back."""

    table: str
    instant: Annotated[str, "An instant.", Also("commit_time")] = "none"
    limit: Limit = None
    is_archived: Annotated[bool, "Old ones too.", Also("showArchived")] = False
    options: Options = None
    dry_run: DryRun = False

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        name: str
        value: str

    def run(self, caller: Caller) -> Iterable[Row]:
        for name in ("table", "instant", "is_archived", "options"):
            yield self.Row(name=name, value=str(getattr(self, name)))


SAMPLE = Sample.declaration


def test_positions_come_first_and_names_fill_the_rest() -> None:
    bound = bind(SAMPLE, ["orders"], {"limit": 3})
    assert bound == {
        "table": "orders",
        "instant": "none",
        "limit": 3,
        "is_archived": False,
        "options": None,
        "dry_run": False,
    }


@pytest.mark.parametrize("name", ["showArchived", "show_archived", "SHOWARCHIVED", "is_archived"])
def test_every_spelling_of_a_name_is_taken(name: str) -> None:
    assert bind(SAMPLE, ["orders"], {name: "true"})["is_archived"] is True


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        ({}, "missing_argument", "table"),
        ({"table": "a", "tabel": "b"}, "unknown_argument", "Did you mean 'table'"),
        ({"table": "a", "instant": "1", "commit_time": "2"}, "repeated_argument", "instant"),
        ({"table": "a", "limit": "few"}, "bad_argument", "limit"),
        ({"table": "a", "limit": 1 << 63}, "bad_argument", "too many digits"),
        ({"table": "a", "limit": True}, "bad_argument", "limit"),
        ({"table": "a", "is_archived": "perhaps"}, "bad_argument", "is_archived"),
        ({"table": "a", "options": "k"}, "bad_argument", "key=value"),
        ({"table": b"a"}, "bad_argument", "table"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    arguments: dict[str, object], code: str, word: str
) -> None:
    with pytest.raises(InvalidRequest, match=word) as refused:
        bind(SAMPLE, [], arguments)
    assert refused.value.code == code


def test_numbers_are_taken_where_texts_are_meant() -> None:
    assert bind(SAMPLE, ["orders", 20261118101500123], {})["instant"] == "20261118101500123"


def test_options_may_be_a_text_or_a_map() -> None:
    text = bind(SAMPLE, ["t"], {"options": "a.b=1, c='x,y=z', d=e=f"})
    assert text["options"] == {"a.b": "1", "c": "x,y=z", "d": "e=f"}
    mapped = bind(SAMPLE, ["t"], {"options": {"a.b": 1}})
    assert mapped["options"] == {"a.b": "1"}


def test_rows_are_given_up_to_the_limit() -> None:
    assert len(list(invoke(SAMPLE, PlainCaller(), ["t"], {}))) == 4
    assert list(invoke(SAMPLE, PlainCaller(), ["t"], {"limit": 1})) == [("table", "t")]


def test_where_only_looking_is_allowed_a_dry_run_is_all_that_is_left() -> None:
    caller = PlainCaller(permissions=Permissions(is_read_only=True))
    with pytest.raises(InvalidRequest, match="changes a table"):
        invoke(SAMPLE, caller, ["t"], {})
    assert list(invoke(SAMPLE, caller, ["t"], {"dry_run": True}))
