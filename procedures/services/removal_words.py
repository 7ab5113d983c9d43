"""What rows about deleted partitions have to say."""

from lakewarden.engine.services.removal import PartitionRemoval


def removal_message(done: PartitionRemoval, *, dry_run: bool) -> str:
    """What was deleted and by which write, or why nothing."""
    if not done:
        named = ", ".join(done.empty)
        return f"There are no rows in {named}." if named else "There is nothing to delete."
    size = sum(one.bytes for one in done.partitions)
    extent = f"{len(done.partitions)} partitions with {size} bytes"
    if done.commit is None:
        return f"{extent} would go; nothing was changed." if dry_run else extent
    return f"{extent} were deleted by {done.commit.instant}; a clean will remove their files."
