"""The page of all procedures, `docs/reference/procedures.md`: made from their declarations.

`python -m lakewarden.procedures.reference_page > docs/reference/procedures.md` renews it.
"""

import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType

from lakewarden.procedures.chapters import CHAPTERS, procedures_of
from lakewarden.procedures.conditions.functions import FUNCTIONS
from lakewarden.procedures.declaring.declaration import Column, Parameter, Procedure
from lakewarden.procedures.help import Help
from lakewarden.procedures.reference import default_text, example, other_spellings

HEAD = """\
# Procedures

Each is called from SQL, as `CALL show_commits(table => 'orders', limit => 5)`, and from a shell, as
`lakewarden show-commits /lake/orders --limit 5`. Arguments are given by position, by name, or both,
positions first; case and underscores of names don't matter. A table is named by `table`, its name
in the catalog, or by `path`; where neither is bold, one of the two is needed. Arguments in bold
are required. Times are timestamps with a zone; instants are texts.

`filter` is a SQL condition over the columns of the answer, as in
`filter => 'state = ''COMPLETED'' and action like ''%commit'''`, and comes before `limit`. It knows
comparisons, `AND`, `OR`, `NOT`, `IN`, `BETWEEN`, `LIKE`, `RLIKE`, `IS NULL`, `CASE`, `CAST`,
arithmetic, and these functions: {functions}.

This page is made by `python -m lakewarden.procedures.reference_page`."""


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    functions = ", ".join(f"`{name}`" for name in sorted({*FUNCTIONS, "coalesce"}))
    yield HEAD.format(functions=functions)
    for chapter in CHAPTERS:
        yield from ("", f"## {_title(chapter)}")
        for procedure in procedures_of(chapter):
            yield from _section(procedure)
    yield from ("", "## Help: what procedures there are", *_section(Help.declaration))


def _title(chapter: ModuleType) -> str:
    return (inspect.getdoc(chapter) or "").rstrip(".")


def _section(procedure: Procedure) -> Iterator[str]:
    yield from ("", f"### {procedure.name}", "", procedure.summary)
    if procedure.is_mutating:
        yield from ("", "It changes something; `dry_run => true` shows what it would do.")
    yield from ("", f"    {example(procedure)}")
    yield from ("", "| argument | type | default | meaning |", "| --- | --- | --- | --- |")
    yield from map(_argument, procedure.parameters)
    yield from ("", "| column | type | meaning |", "| --- | --- | --- |")
    yield from map(_column, procedure.columns)


def _argument(parameter: Parameter) -> str:
    name = f"**`{parameter.name}`**" if parameter.is_required else f"`{parameter.name}`"
    also = "".join(f"; also `{one}`" for one in other_spellings(parameter))
    default = default_text(parameter)
    return _row(
        (f"{name}{also}", str(parameter.type), f"`{default}`" if default else "", parameter.comment)
    )


def _column(column: Column) -> str:
    return _row((f"`{column.name}`", str(column.type), column.comment))


def _row(cells: Iterable[str]) -> str:
    plain = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(plain)} |"


if __name__ == "__main__":
    print(page(), end="")
