"""What tests ask of a table that was restored."""

from lakewarden.engine.formats.instant_metadata import compaction
from tests.engine.services.service_table import (
    ServiceWorld,
)


def folded_files(world: ServiceWorld) -> list[str]:
    """What compactions of the metadata table have put into base files."""
    storage = world.storage.below(".hoodie/metadata")
    plans = [
        compaction.decode_plan(storage.read(entry.path), entry.path)
        for entry in storage.list(".hoodie/timeline").files
        if entry.name.endswith("compaction.requested")
    ]
    return [
        f".hoodie/metadata/{operation.partition_path}/{name}"
        for plan in plans
        for operation in plan.operations
        for name in (operation.data_file_path, *operation.delta_file_paths)
        if name
    ]
