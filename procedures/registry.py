"""The registry: every procedure by its name."""

from collections.abc import Mapping

from lakewarden.procedures.chapters import CHAPTERS, by_name, procedures_of
from lakewarden.procedures.declaring.declaration import Procedure
from lakewarden.procedures.help import Help

PROCEDURES: Mapping[str, Procedure] = {
    **{one.name: one for chapter in CHAPTERS for one in procedures_of(chapter)},
    Help.declaration.name: Help.declaration,
}


def procedure_named(name: str) -> Procedure:
    """The procedure of that name in any case, whatever stands before its last dot."""
    return by_name(name, PROCEDURES)
