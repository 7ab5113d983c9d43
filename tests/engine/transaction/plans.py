"""Plans of the three services for a table of a test: what they hold is what others go by."""

from lakewarden.engine.formats.instant_metadata import compaction, replace
from lakewarden.engine.formats.instant_metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
)
from lakewarden.engine.formats.instant_metadata.replace import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    RequestedReplace,
)
from lakewarden.engine.transaction.attempts.attempt import Attempt
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.start import start
from lakewarden.engine.transaction.state.context import Service
from lakewarden.engine.transaction.state.plan_scope import CANCELLABLE_KEY
from tests.engine.transaction.transaction_table import TransactionTable, Writer

GROUPS = (("p=a", "f1"), ("p=b", "f2"))
SERVICES = tuple(Service)


def plan_of(
    service: Service,
    *,
    cancellable: bool,
    groups: tuple[tuple[str, str], ...] = GROUPS,
    missing: tuple[str, ...] = (),
) -> bytes:
    """The requested file of a plan about some file groups, given as partition and file id."""
    extra = {CANCELLABLE_KEY: str(cancellable).lower()}
    if service is Service.CLUSTERING:
        slices = tuple(
            ClusteringSlice(partition_path=partition, file_id=file_id)
            for partition, file_id in groups
        )
        plan = ClusteringPlan(
            input_groups=(ClusteringGroup(slices=slices),),
            extra_metadata=extra,
            missing_schedule_partitions=missing,
        )
        return replace.encode_plan(RequestedReplace(clustering_plan=plan))
    operations = tuple(
        CompactionOperation(base_instant_time="1", partition_path=partition, file_id=file_id)
        for partition, file_id in groups
    )
    return compaction.encode_plan(
        CompactionPlan(
            operations=operations, extra_metadata=extra, missing_schedule_partitions=missing
        )
    )


def published(
    world: TransactionTable,
    service: Service = Service.COMPACTION,
    *,
    cancellable: bool = True,
    groups: tuple[tuple[str, str], ...] = GROUPS,
) -> str:
    """A plan on the timeline that nobody has started."""
    content = plan_of(service, cancellable=cancellable, groups=groups)
    return publish(world.writer().context, service.action, content, claims=False).instant


def started(own: Writer, instant: str) -> Attempt:
    """An attempt at a plan that has started."""
    attempt = start(own.context, instant).attempt
    assert attempt is not None
    return attempt
