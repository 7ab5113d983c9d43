"""Which log blocks of a slice count, and in which order.

Rollback commands drop blocks that stand before them; log compaction puts one set of blocks in place
of several others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from lakewarden.engine.formats.log.block import DATA_KINDS, Block, BlockKind, rolled_back_instant

_MERGED_KINDS = DATA_KINDS | {BlockKind.DELETE}


def effective_blocks(
    blocks: Iterable[Block],
    is_valid_instant: Callable[[str], bool],
    *,
    keeps_orphans: bool = True,
) -> tuple[Block, ...]:
    """The data and delete blocks to merge, oldest first.

    Blocks come in slice order. Those of one instant stay together, where the first of them stands.
    Corrupt and CDC blocks are skipped: whether a corrupt block is an error is for the caller to
    say before. Orphans are log compactions of which nothing that they replace is there.
    """
    by_instant: dict[str, list[Block]] = {}
    for block in blocks:
        if block.kind is BlockKind.COMMAND:
            by_instant.pop(rolled_back_instant(block), None)
        elif block.kind in _MERGED_KINDS:
            if not block.instant:
                raise block.corrupt("The block does not say which instant wrote it.")
            if is_valid_instant(block.instant):
                by_instant.setdefault(block.instant, []).append(block)
    counting = {
        instant: own
        for instant, own in by_instant.items()
        if _counts(instant, by_instant, keeps_orphans=keeps_orphans)
    }
    return tuple(block for instant in _in_force(counting) for block in counting[instant])


def _counts(
    instant: str, by_instant: Mapping[str, Sequence[Block]], *, keeps_orphans: bool
) -> bool:
    """Whether the blocks of an instant count: a log compaction only as far as its sources do.

    Where some of what it replaces is not looked at, it would bring that back in; what is looked at
    says the same without it.
    """
    is_there = is_missing = False
    seen, waiting = {instant}, [instant]
    while waiting:
        blocks = by_instant.get(waiting.pop())
        if blocks is None:
            is_missing = True
            continue
        compacted = set(blocks[0].compacted_instants)
        is_there |= not compacted
        waiting += compacted - seen
        seen |= compacted
    return not is_missing or (keeps_orphans and not is_there)


def _in_force(by_instant: Mapping[str, Sequence[Block]]) -> list[str]:
    """The instants whose blocks count, oldest first.

    A log compaction stands where the newest plain write that it replaces stood: whatever lies
    between that place and its own came while it ran, and is newer than its contents. If no such
    write is left, it stands at its own place.
    """
    replaced_by = {
        compacted: instant
        for instant, blocks in by_instant.items()
        for compacted in blocks[0].compacted_instants
    }
    is_plain = {instant: not blocks[0].compacted_instants for instant, blocks in by_instant.items()}
    final = {instant: _final(instant, replaced_by) for instant in by_instant}
    standing_for_plain = {final[instant] for instant in by_instant if is_plain[instant]}
    newest_first = [
        final[instant]
        for instant in reversed(list(by_instant))
        if is_plain[instant] or final[instant] not in standing_for_plain
    ]
    return list(dict.fromkeys(newest_first))[::-1]


def _final(instant: str, replaced_by: Mapping[str, str]) -> str:
    """The end of a chain of log compactions; a circle, which no writer makes, ends somewhere."""
    seen = [instant]
    while (following := replaced_by.get(seen[-1])) is not None and following not in seen:
        seen.append(following)
    return seen[-1]
