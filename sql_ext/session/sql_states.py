"""SQLSTATEs: what an error is called where SQL clients look for it."""

from collections.abc import Mapping

from lakewarden.engine.kernel.errors import (
    Conflict,
    CorruptTable,
    Defect,
    InvalidRequest,
    LakewardenError,
    Unavailable,
    Unsettled,
)

_OF_KIND: Mapping[type[LakewardenError], str] = {
    # Syntax error or access rule violation.
    InvalidRequest: "42000",
    # Serialization failure: the client may try again.
    Conflict: "40001",
    # Connection failure.
    Unavailable: "08006",
    # Statement completion unknown.
    Unsettled: "40003",
    # Data corrupted.
    CorruptTable: "XX001",
    # Internal error.
    Defect: "XX000",
}
OF_CODE: Mapping[str, str] = {
    "unknown_procedure": "42883",
    "unknown_argument": "4274K",
    "repeated_argument": "4274K",
    "missing_argument": "4274K",
    "too_many_arguments": "42605",
    "bad_argument": "42804",
    "unknown_table": "42P01",
    "unknown_database": "42704",
    "bad_table_name": "42602",
    "not_a_table": "42809",
    "path_not_allowed": "42501",
    "read_only": "42501",
    "statement_not_allowed": "42501",
    "folder_of_table": "42501",
    "interrupted": "57014",
}


def sql_state(error: LakewardenError) -> str:
    """The SQLSTATE of an error, by its code or else by its kind."""
    of_kind = next((state for kind, state in _OF_KIND.items() if isinstance(error, kind)), "XX000")
    return OF_CODE.get(error.code, of_kind)
