"""Settings of Hudi that Lakewarden has no setting of its own for: what each comes to here.

The table of them is `hudi_settings.toml`. One without effect is named once in a process; one that
would change rows or files is refused.
"""

import tomllib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, refuse_unknown
from lakewarden.engine.table.creation import (
    is_creation_property,
    is_fixed_property,
    refuse_fixed,
)
from lakewarden.engine.table.description import DESCRIBING, described

_PATH = Path(__file__).with_name("hudi_settings.toml")
# The keys that have been named in this process, as having no effect.
_NAMED: set[str] = set()


class NoEffect(UserWarning):
    """A setting of Hudi has no effect here."""


class _Group(TypedDict):
    why: str
    keys: list[str]


class _Limited(TypedDict):
    key: str
    why: str
    values: NotRequired[list[str]]


class _Document(TypedDict):
    """The table as it is written down."""

    ignored: list[_Group]
    families: list[_Group]
    limited: list[_Limited]


@dataclass(frozen=True, slots=True)
class ForeignSetting:
    """What becomes of a key; other values than these are refused, if there are any."""

    key: str
    why: str
    is_limited: bool = False
    values: tuple[str, ...] = ()

    def check(self, value: str) -> None:
        """Refuse a value that would change rows or files if it were left out."""
        plain = value.strip()
        if not self.is_limited or not plain or plain.lower() in self.values:
            return
        allowed = f"set it to {' or '.join(self.values)}, or " if self.values else ""
        raise InvalidRequest(
            "unsupported_setting",
            what=f"Lakewarden cannot write or read with {self.key}={value}.",
            why=f"{self.why} Without it rows or files would be others.",
            now=f"{allowed[:1].upper()}{allowed[1:]}{'l' if allowed else 'L'}eave it out.",
            setting=self.key,
            value=value,
        )


def understood(
    given: Mapping[str, object], known: Iterable[Setting[object]], also: Iterable[str] = ()
) -> dict[str, object]:
    """The options that have an effect. Others of Hudi's are named, and those unknown refused.

    `also` are names that only this caller knows.
    """
    known, also = tuple(known), frozenset(also)
    names = {name for setting in known for name in setting.names} | also
    options: dict[str, object] = {}
    left: dict[str, object] = {}
    for key, value in given.items():
        if key in names or key in DESCRIBING or is_creation_property(key):
            options[key] = value
        else:
            left[key] = value
    refuse_fixed({key: _text(value) for key, value in left.items()})
    left = {key: value for key, value in left.items() if not is_fixed_property(key)}
    foreign = foreign_settings()
    unknown = [key for key in left if of_hudi(key) is None]
    refuse_unknown(unknown, known, {*foreign, *DESCRIBING, *also})
    check_values(left)
    for key in left:
        _name_once(key)
    return options


def check_values(given: Mapping[str, object]) -> None:
    """Refuse settings that would change rows or files; a session may have others of all kinds."""
    described(given)
    for key, value in given.items():
        found = of_hudi(key)
        if found is not None:
            found.check(_text(value))


def of_hudi(key: str) -> ForeignSetting | None:
    """What becomes of a setting that only Hudi has."""
    found = foreign_settings().get(key)
    if found is not None:
        return found
    why = next((why for prefix, why in _families().items() if key.startswith(prefix)), None)
    return None if why is None else ForeignSetting(key, why)


@cache
def foreign_settings() -> Mapping[str, ForeignSetting]:
    """All of them, by their keys."""
    found = {
        key: ForeignSetting(key, group["why"])
        for group in _document()["ignored"]
        for key in group["keys"]
    }
    for one in _document()["limited"]:
        values = tuple(one.get("values", ()))
        found[one["key"]] = ForeignSetting(one["key"], one["why"], is_limited=True, values=values)
    return found


@cache
def _families() -> Mapping[str, str]:
    return {key: group["why"] for group in _document()["families"] for key in group["keys"]}


@cache
def _document() -> _Document:
    return cast(_Document, tomllib.loads(_PATH.read_text()))


def _name_once(key: str) -> None:
    found = of_hudi(key)
    if found is None or key in _NAMED:
        return
    _NAMED.add(key)
    warnings.warn(f"{key} has no effect here. {found.why}", NoEffect, stacklevel=2)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
