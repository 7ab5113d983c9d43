"""Deduplication of a table: which rows share a key, which of them stays and why, and the repair."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from lakewarden.engine.index.repeated_keys import KeyCopies, KeySearch
from lakewarden.engine.index.settings import has_global_index
from lakewarden.engine.kernel.shown import Shown
from lakewarden.engine.services.inline import after_write
from lakewarden.engine.snapshot import Snapshot, load_snapshot, retrying_view
from lakewarden.engine.table.schema import COMMIT_TIME
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.write.deduplicate import copies_of, deduplicate
from lakewarden.engine.write.request import Commit
from lakewarden.engine.write.writer import TableWriter

_GOES = "Another row of its key stays."


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCopy:
    """One of several rows with the same key."""

    key: str
    partition: str
    file_id: str
    # Of the rows of its file group, counted from 0.
    row: int
    commit_time: str
    stays: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Deduplicated(Shown):
    """The rows that shared a key, and the commit that has left one of each; true if there were any.

    Without a commit nothing was changed: in a dry run, or where no key repeats.
    """

    copies: tuple[KeyCopy, ...] = ()
    commit: Commit | None = None

    def __bool__(self) -> bool:
        return bool(self.copies)


def repair_deduplicate(
    context: Context, partitions: Sequence[str] | None = None, *, dry_run: bool = False
) -> Deduplicated:
    """Leave every key once, in some partitions or in all.

    An index within partitions tells keys apart by these, as writes do.
    """
    copies = retrying_view(
        partial(load_snapshot, context.storage),
        lambda state: tuple(_reported(key_search(context, state), partitions)),
    )
    if dry_run or not copies:
        return Deduplicated(copies=copies)
    concerned = sorted({one.partition for one in copies})
    request = deduplicate(lambda state: key_search(context, state), concerned)
    commit = after_write(context, TableWriter(context).write(request)).commit
    return Deduplicated(copies=copies, commit=commit)


def key_search(context: Context, state: Snapshot) -> KeySearch:
    """The search for repeated keys as the table's index tells keys apart."""
    is_global = has_global_index(state, context.settings)
    return KeySearch(state, context.ports.executor, is_global)


def _reported(search: KeySearch, partitions: Sequence[str] | None) -> Iterator[KeyCopy]:
    for copies in copies_of(search, partitions, (COMMIT_TIME,)):
        yield from _each(copies)


def _each(copies: KeyCopies) -> Iterator[KeyCopy]:
    keys, commits = copies.keys.to_pylist(), copies.rows.column(COMMIT_TIME).to_pylist()
    reasons = dict(zip(copies.key_at[copies.stays].tolist(), copies.reasons, strict=True))
    for at, key in enumerate(copies.key_at.tolist()):
        slice_ = copies.slices[copies.slice_at[at]]
        stays = bool(copies.stays[at])
        yield KeyCopy(
            key=keys[key],
            partition=slice_.partition,
            file_id=slice_.file_id,
            row=int(copies.row_at[at]),
            commit_time=commits[at],
            stays=stays,
            reason=reasons[key] if stays else _GOES,
        )
