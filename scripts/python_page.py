"""The page of the Python API, `docs/reference/python.md`: made from signatures and docstrings.

`python -m scripts.python_page > docs/reference/python.md` renews it.
"""

import dataclasses
import enum
import inspect
import re
from collections.abc import Callable, Iterator
from typing import get_args

import lakewarden
from lakewarden.previews import Preview
from lakewarden.table_service_handle import Plan, TableServiceHandle

HEAD = """\
# The Python API

`import lakewarden` gives the names of this page. A `Table` reads, writes and maintains one table.
Its `compaction`, `log_compaction` and `clustering` each have the calls of a
[service](#a-service-of-a-table), which return plans. Every other call returns one of the
[results](#results): a value with the attributes that are listed there.
[errors.md](errors.md) lists what calls raise, [settings.md](../settings.md) the options of writes
and services.

`Rows` are an Arrow table or reader, a DataFrame of Spark, pandas or polars, or a list of
dictionaries. A `Filter` is an Arrow expression, or a list of `(column, operator, value)` of which
all must hold; in a list of such lists, one of them must.

This page is made by `python -m scripts.python_page`."""

SERVICE = "A service of a table"
_LINE_MAX = 88
_CONDITION = "tuple[str, str, object]"
# Types that are long, by the names that the code has for them.
_ALIASES = {
    f"Expression | Sequence[{_CONDITION}] | Sequence[Sequence[{_CONDITION}]]": "Filter",
    "ArrowStream | ArrowArray | Sequence[Mapping[str, object]]": "Rows",
    "Rows | Incoming | FarRows | Sequence[str | int]": "Rows | Sequence[str | int]",
}


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def public_classes() -> tuple[type, ...]:
    """The classes that a caller meets: the table, its services, and what their calls return."""
    calls = (lakewarden.Table, TableServiceHandle, Plan, Preview)
    found = {one for owner in calls for one in _returned(owner)}
    return (*calls, *sorted(found - {*calls}, key=lambda one: one.__name__))


def members(owner: type) -> dict[str, Callable[..., object] | property]:
    """The public methods and properties of a class, in the order of its code."""
    found: dict[str, Callable[..., object] | property] = {}
    for base in owner.__mro__:
        for name, value in vars(base).items():
            made = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if not name.startswith("_") and (
                inspect.isfunction(made) or isinstance(made, property)
            ):
                found.setdefault(name, made)
    return found


def _lines() -> Iterator[str]:
    yield HEAD
    exported = {name: getattr(lakewarden, name) for name in lakewarden.__all__}
    yield from ("", "## Functions")
    for name, value in exported.items():
        if inspect.isfunction(value):
            yield from _call(f"lakewarden.{name}", value, is_bound=False)
    table, service, plan, preview, *results = public_classes()
    yield from _class("Table", table, "table")
    yield from _class(SERVICE, service, "service")
    yield from _class("Plan", plan, "plan")
    yield from _class("Preview", preview, "preview")
    yield from ("", "## Errors", "", "| class | what a caller can do |", "| --- | --- |")
    for name, value in exported.items():
        if inspect.isclass(value) and issubclass(value, Exception):
            yield f"| `{name}` | {_sentence(value)} |"
    yield from ("", "## Results")
    for result in results:
        yield from _class(result.__name__, result, "result", level="###")


def _class(title: str, owner: type, called: str, *, level: str = "##") -> Iterator[str]:
    yield from ("", f"{level} {title}", "", inspect.getdoc(owner) or "")
    yield from _attributes(owner)
    for name, member in members(owner).items():
        if isinstance(member, property):
            continue
        yield from _call(f"{called}.{name}", member, is_bound=True, level=f"{level}#")


def _attributes(owner: type) -> Iterator[str]:
    rows = [(name, _type(kind), "") for name, kind in _fields(owner).items()]
    for name, member in members(owner).items():
        if isinstance(member, property):
            kind = inspect.signature(member.fget).return_annotation if member.fget else ""
            rows.append((name, _type(kind), _sentence(member)))
    if issubclass(owner, enum.Enum):
        rows = [(str(one.value), "", "") for one in owner]
    if rows:
        yield from ("", "| attribute | type | meaning |", "| --- | --- | --- |")
        for name, kind, meaning in rows:
            yield f"| `{name}` | {_cell(kind)} | {meaning} |"


def _fields(owner: type) -> dict[str, object]:
    if not dataclasses.is_dataclass(owner):
        return {}
    return {one.name: one.type for one in dataclasses.fields(owner) if not one.name.startswith("_")}


def _call(
    name: str, function: Callable[..., object], *, is_bound: bool, level: str = "###"
) -> Iterator[str]:
    signature = inspect.signature(function)
    given = list(signature.parameters.values())[1 if is_bound else 0 :]
    shown = [_parameter(one) for one in given]
    names = [one.kind for one in given]
    if inspect.Parameter.KEYWORD_ONLY in names and inspect.Parameter.VAR_POSITIONAL not in names:
        shown.insert(names.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = f" -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(shown)}){returned}"
    if len(line) > _LINE_MAX:
        line = "\n".join([f"{name}(", *(f"    {one}," for one in shown), f"){returned}"])
    yield from ("", f"{level} {name}", "", "```text", line, "```", "")
    yield inspect.getdoc(function) or ""


def _parameter(one: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    text = f"{stars.get(one.kind, '')}{one.name}: {_type(one.annotation)}"
    if one.default is inspect.Parameter.empty:
        return text
    default = "..." if isinstance(one.default, frozenset | enum.Enum) else repr(one.default)
    return f"{text} = {default}"


def _type(annotation: object) -> str:
    """An annotation without the modules of its names."""
    if annotation is None or annotation is type(None):
        return "None"
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"ForwardRef\('(.*?)'\)", r"\1", text).replace("~", "").replace("'", "")
    text = re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)
    for long, short in _ALIASES.items():
        text = text.replace(long, short)
    return text


def _cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _sentence(thing: object) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _returned(owner: type) -> Iterator[type]:
    """Our own classes in what the public calls of a class return."""
    for member in members(owner).values():
        function = member.fget if isinstance(member, property) else member
        if function is not None:
            yield from _own_classes(inspect.signature(function).return_annotation)


def _own_classes(annotation: object) -> Iterator[type]:
    if inspect.isclass(annotation) and annotation.__module__.startswith("lakewarden."):
        yield annotation
    for inner in get_args(annotation):
        yield from _own_classes(inner)


if __name__ == "__main__":
    print(page(), end="")
