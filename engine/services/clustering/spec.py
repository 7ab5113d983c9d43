"""What every task of a clustering has to know; it travels to other processes."""

from dataclasses import dataclass, field

from lakewarden.engine.services.clustering.order import Order
from lakewarden.engine.write.spec import WriteSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """How files are made, and in which order their rows are."""

    write: WriteSpec
    order: Order = field(default_factory=Order)
    copied_rows_min: int
    sorted_together_bytes: int
