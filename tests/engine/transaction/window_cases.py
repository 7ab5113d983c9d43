"""Plans with windows on a small table, as tests of windows need them."""

from collections.abc import Iterable

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.formats.instant_metadata import compaction
from lakewarden.engine.formats.instant_metadata import replace as clustering
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
from lakewarden.engine.transaction.attempts.publish import publish
from lakewarden.engine.transaction.state.context import Service, load_for_writing
from lakewarden.engine.transaction.window.window import (
    Window,
    find_window,
    window_metadata_of,
    with_window_metadata,
)
from tests.incremental.planning_table import ToyTable

A, B, C = (FileGroupId(f"p={name}", f"f{name}") for name in "abc")
SKEW_MS = 300_001


def content_of(
    service: Service, keys: Iterable[FileGroupId], missing: tuple[str, ...] = ()
) -> bytes:
    if service is Service.CLUSTERING:
        slices = tuple(ClusteringSlice(file_id=k.file_id, partition_path=k.partition) for k in keys)
        plan = ClusteringPlan(
            input_groups=(ClusteringGroup(slices=slices),), missing_schedule_partitions=missing
        )
        return clustering.encode_plan(RequestedReplace(clustering_plan=plan))
    operations = tuple(
        CompactionOperation(
            base_instant_time="1", file_id=key.file_id, partition_path=key.partition
        )
        for key in keys
    )
    return compaction.encode_plan(
        CompactionPlan(operations=operations, missing_schedule_partitions=missing)
    )


def plan(
    table: ToyTable,
    *keys: FileGroupId,
    missing: tuple[str, ...] = (),
    service: Service = Service.COMPACTION,
    rules: str = "",
) -> str:
    """A plan of ours, on the timeline."""
    table.clock.advance(100)
    context = table.context()
    account = window_metadata_of(load_for_writing(context), rules)
    content = with_window_metadata(service, content_of(service, keys), account, missing)
    return publish(context, service.action, content, claims=False).instant


def window(
    table: ToyTable, service: Service = Service.COMPACTION, rules: str = "", **given: str
) -> Window:
    context = table.context(**given)
    return find_window(context, load_for_writing(context), service, rules)


def written() -> ToyTable:
    table = ToyTable()
    table.insert(A, B, C)
    table.append(A, B, C)
    return table
