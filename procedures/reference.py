"""Reference: what help, the reference page and the command line say about a procedure."""

from collections.abc import Mapping

from lakewarden.procedures.declaring.declaration import Parameter, Procedure, SqlType

# What an example gives where a procedure can't do without.
_SAMPLES: Mapping[str, str] = {
    "file": "'9f2c1d40-0_0-17-31_20261118101500123.parquet'",
    "local_folder": "'/tmp/instants'",
    "log_file_path_pattern": "'city=Oslo/.*.log.*'",
    "partition": "'city=Oslo'",
    "path": "'/lake/orders_copy'",
}
_INSTANT = "'20261118101500123'"
_BY_TYPE: Mapping[SqlType, str] = {
    SqlType.BIGINT: "1",
    SqlType.DOUBLE: "0.5",
    SqlType.BOOLEAN: "true",
    SqlType.TIMESTAMP: "TIMESTAMP '2026-11-18 10:15:00'",
}


def default_text(parameter: Parameter) -> str:
    """The default as a call would spell it; empty where there is none, or it says nothing."""
    value = parameter.default
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)


def signature(procedure: Procedure) -> str:
    """Name and arguments in their order; those in brackets may be skipped."""
    names = [one.name if one.is_required else f"[{one.name}]" for one in procedure.parameters]
    return f"{procedure.name}({', '.join(names)})"


def example(procedure: Procedure) -> str:
    """A call with what it can't do without."""
    names = [one.name for one in procedure.parameters]
    given = [
        f"{one.name} => {_sample(one)}"
        for one in procedure.parameters
        if one.is_required and one.name != "table"
    ]
    if "table" in names:
        given.insert(0, "table => 'orders'")
    if procedure.is_mutating:
        given.append("dry_run => true")
    return f"CALL {procedure.name}({', '.join(given)})"


def other_spellings(parameter: Parameter) -> tuple[str, ...]:
    """Spellings besides the name that differ from it by more than case and underscores."""
    return tuple(one for one in parameter.also if _plain(one) != _plain(parameter.name))


def _sample(parameter: Parameter) -> str:
    if "instant" in parameter.name:
        return _INSTANT
    return _SAMPLES.get(parameter.name) or _BY_TYPE.get(parameter.type) or "'...'"


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
