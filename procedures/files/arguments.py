"""Arguments of the views of files."""

from typing import Annotated

MaxInstant = Annotated[str, "Only files from before this instant."]
IncludeMax = Annotated[bool, "Also files of that instant."]
IncludeInFlight = Annotated[bool, "Also files whose write has not completed."]
ExcludeCompaction = Annotated[bool, "As if no compaction were pending."]
PathRegex = Annotated[str, "Only partitions whose path is like this: 'city=O*'; all without it."]


def names_text(names: list[str]) -> str:
    """File names as one text."""
    return f"[{', '.join(names)}]"
