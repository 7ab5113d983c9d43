"""Settings: declared once, given in layers, and each answer knows where it came from.

Layers go from the most to the least telling: argument, session, table properties, environment,
default. A setting has one key; older and foreign spellings of it are aliases.
"""

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Generic, TypeVar

from lakewarden.engine.kernel.errors import InvalidRequest

T = TypeVar("T", covariant=True)
# Names less alike than that are of different things.
_MISSPELT_MIN = 0.8
_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


class Origin(StrEnum):
    """Where a value was given; the order is that of precedence."""

    ARGUMENT = "argument"
    SESSION = "session"
    TABLE = "table properties"
    ENVIRONMENT = "environment"
    DEFAULT = "default"


# Without slots: a generic class with them can't be called as `Setting[int](...)`.
@dataclass(frozen=True)
class Setting(Generic[T]):
    """One thing that can be set; `parse` turns text into a value or raises ValueError."""

    key: str
    default: T
    parse: Callable[[str], T] = field(repr=False)
    description: str = ""
    aliases: tuple[str, ...] = ()
    # What the operation that it belongs to calls it as a keyword, besides the ends of its names.
    short: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.key, *self.aliases)


@dataclass(frozen=True, slots=True)
class Resolved(Generic[T]):
    """A value, and where it was found."""

    value: T
    origin: Origin
    key: str

    @property
    def is_default(self) -> bool:
        """Whether no source has set a value."""
        return self.origin is Origin.DEFAULT


@dataclass(frozen=True, slots=True)
class Settings:
    """What has been given, layer by layer."""

    layers: tuple[tuple[Origin, Mapping[str, str]], ...] = ()

    @classmethod
    def of(
        cls,
        *,
        arguments: Mapping[str, object] | None = None,
        session: Mapping[str, str] | None = None,
        table: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> "Settings":
        given: tuple[tuple[Origin, Mapping[str, object] | None], ...] = (
            (Origin.ARGUMENT, arguments),
            (Origin.SESSION, session),
            (Origin.TABLE, table),
            (Origin.ENVIRONMENT, environment),
        )
        return cls(tuple((origin, _texts(values)) for origin, values in given if values))

    def __getitem__(self, setting: Setting[T]) -> T:
        return self.resolve(setting).value

    def resolve(self, setting: Setting[T]) -> Resolved[T]:
        """The value from the first layer that has it under any of its names."""
        for origin, values in self.layers:
            for name in setting.names:
                if name in values:
                    return Resolved(_parsed(setting, name, values[name]), origin, name)
        return Resolved(setting.default, Origin.DEFAULT, setting.key)


def refuse_unknown(
    given: Iterable[str], known: Iterable[Setting[object]], also: Iterable[str] = ()
) -> None:
    """Refuse options that mean nothing, naming the nearest one that does; `also` do, too."""
    names = {name for setting in known for name in setting.names}.union(also)
    for option in given:
        if option not in names:
            raise _unknown(option, names)


def by_keyword(
    given: Mapping[str, object],
    known: Iterable[Setting[object]],
    own: Iterable[Setting[object]] = (),
    parameters: Collection[str] = (),
) -> dict[str, object]:
    """Keyword arguments as options: a keyword is the end of a key, with `_` for the dots.

    So `small_file_limit` means `hoodie.parquet.small.file.limit`; an end that several keys share
    means none of them, but that of an operation's own ones, and the short name of one of these.
    `parameters` are those of the call, which a misspelt keyword may mean as well.
    """
    if not given:
        return {}
    own = tuple(own)
    shorts = {setting.short: {setting.key} for setting in own if setting.short}
    meanings = _keywords(known) | _keywords(own) | shorts
    options: dict[str, object] = {}
    for keyword, value in given.items():
        keys = meanings.get(keyword, set())
        if len(keys) > 1:
            raise InvalidRequest(
                "ambiguous_option",
                what=f"{keyword!r} can mean any of {', '.join(sorted(keys))}.",
                why="A keyword must match the end of one key only.",
                now="Spell out more of the key, with underscores for its dots.",
                option=keyword,
            )
        if not keys:
            raise _unknown(keyword, {*meanings, *parameters})
        options[keys.pop()] = value
    return options


def _keywords(known: Iterable[Setting[object]]) -> dict[str, set[str]]:
    meanings: dict[str, set[str]] = {}
    for setting in known:
        for name in setting.names:
            for end in _ends(name):
                meanings.setdefault(end, set()).add(setting.key)
    return meanings


@cache
def _ends(name: str) -> tuple[str, ...]:
    words = name.replace(".", "_").split("_")
    return tuple("_".join(words[start:]) for start in range(len(words)))


def flag(text: str) -> bool:
    """A boolean as people and Hudi spell it."""
    lowered = text.strip().lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ValueError("it must be true or false")


def whole_number(text: str) -> int:
    """A number without a fraction that is not negative."""
    if not text.strip().removeprefix("-").isdecimal():
        raise ValueError("it must be a whole number")
    number = int(text)
    if number < 0:
        raise ValueError("it must not be negative")
    return number


def positive_number(text: str) -> int:
    """A whole number above zero."""
    number = whole_number(text)
    if number < 1:
        raise ValueError("it must be above zero")
    return number


def one_of(*words: str) -> Callable[[str], str]:
    """A parser for a closed list of words, in any case."""

    def parse(text: str) -> str:
        for word in words:
            if word.lower() == text.strip().lower():
                return word
        raise ValueError(f"it must be one of {', '.join(words)}")

    return parse


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {name: _text(value) for name, value in values.items()}


def _text(value: object) -> str:
    """A value as settings spell it: several names stand in one, separated by commas."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parsed(setting: Setting[T], name: str, text: str) -> T:
    try:
        return setting.parse(text)
    except ValueError as error:
        raise InvalidRequest(
            "bad_setting",
            what=f"{name}={text!r} is not valid.",
            why=f"{setting.description.rstrip('.')}; {error}.",
            now=f"Its default is {setting.default!r}.",
            setting=name,
            value=text,
        ) from None


def _unknown(option: str, names: set[str]) -> InvalidRequest:
    nearest = difflib.get_close_matches(option, sorted(names), n=1, cutoff=0.5)
    is_misspelt = bool(difflib.get_close_matches(option, nearest, cutoff=_MISSPELT_MIN))
    known = f" The nearest one is {nearest[0]!r}." if nearest else ""
    return InvalidRequest(
        "unknown_option",
        what=f"Lakewarden has no option {option!r}.",
        why="Lakewarden refuses unknown options, so that a typing error does no harm.",
        now=f"Did you mean {nearest[0]!r}?" if is_misspelt else f"Leave it out.{known}",
        option=option,
        nearest=nearest[0] if nearest else None,
    )
