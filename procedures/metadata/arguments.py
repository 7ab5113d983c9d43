"""Arguments that several procedures about the metadata table share."""

from typing import Annotated

from lakewarden.procedures.declaring.declaration import Also

PartitionPaths = Annotated[str, "Paths of partitions, separated by commas; all without any."]
TargetColumns = Annotated[
    str, "Columns, separated by commas; all without any.", Also("targetColumns")
]
