"""What a restore tells: the instants that are no more, or what stands in its way."""

from collections.abc import Sequence

from lakewarden.engine.services.restore.run import Restored


def restored_messages(done: Restored, *, dry_run: bool) -> tuple[str, ...]:
    """A sentence for each obstacle, of which only a dry run tells; else one for what was done."""
    if done.obstacles:
        return tuple(f"{one.why} {one.remedy}" for one in done.obstacles)
    if not done.undone:
        return ("The table already has that state; there was nothing to undo.",)
    word = "would be" if dry_run else "are"
    what = f"{len(done.undone)} later instants {word} undone: {', '.join(done.undone)}."
    return (f"{what}{dropped_sentence(done.metadata_dropped)}",)


def dropped_sentence(partitions: Sequence[str]) -> str:
    """What has to be built again, with a space before it; nothing where nothing has."""
    if not partitions:
        return ""
    return (
        f" Dropped, because they include undone instants: {', '.join(partitions)}; build "
        "them again."
    )
