"""The one column that Hudi's procedures about the whole metadata table give."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """What was done, or why nothing was."""

    result: str
