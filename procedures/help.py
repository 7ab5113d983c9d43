"""`help`: what procedures there are, and what each takes and gives."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from lakewarden.procedures.chapters import CHAPTERS, by_name, procedures_of
from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import (
    Call,
    Filter,
    Limit,
    Parameter,
    Procedure,
    procedure,
)
from lakewarden.procedures.reference import default_text, example, other_spellings, signature


@procedure("help")
class Help(Call):
    """All procedures, or one with its arguments, its columns and an example; a row each."""

    cmd: Annotated[str | None, "The name of a procedure; all are listed without it."] = None
    filter: Filter = ""
    limit: Limit = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        result: Annotated[str, "The whole of it, to be read."]
        kind: Annotated[str, "procedure, argument, column or example"]
        name: str
        type: str | None = None
        default: Annotated[str | None, "The value of an argument that is not given."] = None
        is_required: bool | None = None
        description: str = ""

    def run(self, caller: Caller) -> Iterable[Row]:
        known = {one.name: one for chapter in CHAPTERS for one in procedures_of(chapter)}
        known[Help.declaration.name] = Help.declaration
        return _rows(by_name(self.cmd, known)) if self.cmd else map(_procedure_row, known.values())


def _rows(found: Procedure) -> Iterator[Help.Row]:
    yield _procedure_row(found)
    for parameter in found.parameters:
        yield _argument_row(parameter)
    for column in found.columns:
        yield Help.Row(
            result=_line(f"column {column.name} {column.type}", column.comment),
            kind="column",
            name=column.name,
            type=str(column.type),
            description=column.comment,
        )
    yield Help.Row(result=example(found), kind="example", name=found.name)


def _procedure_row(found: Procedure) -> Help.Row:
    return Help.Row(
        result=_line(signature(found), found.summary),
        kind="procedure",
        name=found.name,
        description=found.summary,
    )


def _argument_row(parameter: Parameter) -> Help.Row:
    default = default_text(parameter)
    also = "".join(f" Also called {name}." for name in other_spellings(parameter))
    spelled = f" = {default}" if default else " (required)" if parameter.is_required else ""
    return Help.Row(
        result=_line(
            f"argument {parameter.name} {parameter.type}{spelled}", f"{parameter.comment}{also}"
        ),
        kind="argument",
        name=parameter.name,
        type=str(parameter.type),
        default=default or None,
        is_required=parameter.is_required,
        description=f"{parameter.comment}{also}",
    )


def _line(head: str, text: str) -> str:
    return f"{head}: {' '.join(text.split())}" if text else head
