"""What several calls about indexes take."""

from collections.abc import Mapping
from typing import Annotated

IndexName = Annotated[str, "The name of the index."]
IndexTypeName = Annotated[
    str | None,
    "record_index, column_stats, partition_stats, secondary_index or bloom_filters; without one the"
    " columns decide: those of the record key mean a record index.",
]
IndexColumns = Annotated[tuple[str, ...] | None, "Its columns."]
IndexOptions = Annotated[
    Mapping[str, str] | None,
    "isPartitioned=true for a record index of each partition, and settings of Hudi.",
]
