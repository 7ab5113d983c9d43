"""Arguments of the views of files."""

from typing import Annotated

MaxInstant = Annotated[str, "Only what was there before this instant."]
IncludeMax = Annotated[bool, "Also what that very instant has written."]
IncludeInFlight = Annotated[bool, "Also files whose write has not completed."]
ExcludeCompaction = Annotated[bool, "As if no compaction were pending."]
PathRegex = Annotated[str, "Only partitions whose path is like this: 'city=O*'; all without it."]


def names_text(names: list[str]) -> str:
    """File names as one text."""
    return f"[{', '.join(names)}]"
