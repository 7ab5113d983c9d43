"""Built indexes as rows."""

from dataclasses import dataclass
from typing import Annotated

from lakewarden.engine.services.indexing.result import IndexBuilt


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltRow:
    """An index after a call."""

    index_name: str
    partition_name: Annotated[str, "The partition of the metadata table that it is."]
    instant: Annotated[str | None, "The build; None where the table was at rest."]
    state: Annotated[str, "READY, or PLANNED after a schedule."]
    indexed_up_to: Annotated[str | None, "The write that its base files go up to."]
    caught_up_to: Annotated[str | None, "The newest write that it covers."]
    records_count: Annotated[int | None, "Keys that were indexed, for a record index."]
    file_groups_count: int
    message: str


def built_row(done: IndexBuilt) -> BuiltRow:
    return BuiltRow(
        index_name=done.name,
        partition_name=done.partition,
        instant=done.instant,
        state=str(done.state),
        indexed_up_to=done.indexed_up_to,
        caught_up_to=done.caught_up_to or done.indexed_up_to,
        records_count=done.records_count,
        file_groups_count=done.file_groups_count,
        message=done.message,
    )
