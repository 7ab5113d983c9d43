"""Declarations of procedures, as Spark gets them."""

from collections.abc import Mapping

from lakewarden.procedures.declaring.declaration import Column, Parameter, Procedure


def declarations(procedures: Mapping[str, Procedure]) -> list[dict[str, object]]:
    """Name, description and columns of every procedure."""
    return [
        {
            "name": one.name,
            "description": description(one),
            "columns": [(column.name, str(column.type)) for column in one.columns],
        }
        for one in procedures.values()
    ]


def description(procedure: Procedure) -> str:
    """What DESCRIBE PROCEDURE says: the summary, the arguments, the columns."""
    return "\n".join(
        [
            procedure.summary,
            "Arguments:",
            *map(_argument, procedure.parameters),
            "Columns:",
            *map(_column, procedure.columns),
        ]
    )


def _argument(parameter: Parameter) -> str:
    need = "required" if parameter.is_required else f"default {_literal(parameter.default)}"
    return f"  {parameter.name} {parameter.type}, {need}: {parameter.comment}"


def _column(column: Column) -> str:
    comment = f": {column.comment}" if column.comment else ""
    return f"  {column.name} {column.type}{comment}"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()
