"""What every task of a clustering has to know; it travels to other processes."""

from dataclasses import dataclass, field

from lakewarden.engine.services.clustering.order import RowOrder
from lakewarden.engine.write.files.spec import WriteSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """How files are made, and in which order their rows are."""

    write: WriteSpec
    order: RowOrder = field(default_factory=RowOrder)
    copied_rows_min: int
    sorted_together_bytes: int
