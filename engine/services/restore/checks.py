"""What stands in the way of a restore; all of it is told at once, and nothing is changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.formats.payloads import savepoint
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.plans.context import Context
from lakewarden.engine.plans.live_attempt import live_attempt
from lakewarden.engine.plans.standing import age_of
from lakewarden.engine.read.removed import Past, first_missed
from lakewarden.engine.services.restore.point import all_files, undone_by, visibility_without
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.active import InstantFiles
from lakewarden.engine.timeline.instant import COMPLETED_WRITES, Action, Instant
from lakewarden.engine.timeline.ledger import read_ledger
from lakewarden.engine.view.file_names import parse_file_name
from lakewarden.engine.view.listing import StorageListing


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Something that stands in the way, and what can be done about it."""

    code: str
    why: str
    remedy: str
    instant: str | None = None
    # It goes away by itself.
    passes: bool = False


def target_of(moment: Snapshot, instant: str) -> Instant:
    """The completed write to go back to."""
    target = moment.completed_write(instant)
    if target is not None:
        return target
    is_there = bool(moment.timeline.active.with_time(instant))
    is_archived = not is_there and moment.timeline.completion_time(instant) is not None
    code = "instant_archived" if is_archived else "not_completed" if is_there else "unknown_instant"
    why = {
        "instant_archived": "It is not on the active timeline.",
        "not_completed": "It is not a completed write.",
        "unknown_instant": "The timeline does not have this instant.",
    }[code]
    raise InvalidRequest(
        code,
        what=f"The table was not restored to {instant}.",
        why=why,
        now="Choose a completed write of the active timeline, or a savepoint.",
        instant=instant,
    )


def obstacles(
    context: Context, moment: Snapshot, target: Instant, *, from_savepoint: bool = False
) -> tuple[Obstacle, ...]:
    """Why the table cannot be taken back to a write now; empty when it can be."""
    undone = undone_by(moment, target)
    return (
        *(_unsaved(moment, target) if from_savepoint else ()),
        *_archived(moment, target),
        *_savepointed(moment, undone),
        *_cleaned(context, moment, target, undone),
        *_being_indexed(moment),
        *_alive(context, moment, undone),
    )


def _unsaved(moment: Snapshot, target: Instant) -> Iterator[Obstacle]:
    if all(one.requested != target.requested for one in moment.timeline.active.savepoints()):
        yield Obstacle(
            code="no_savepoint",
            why=f"The table has no savepoint at {target.requested}.",
            remedy="Choose an existing savepoint, or restore to the instant itself.",
            instant=target.requested,
        )


def _archived(moment: Snapshot, target: Instant) -> Iterator[Obstacle]:
    """An archival that was cut short leaves writes in both places, and those stay archived."""
    for instant in moment.timeline.archive.instants(target.requested, None):
        if instant.action in COMPLETED_WRITES and instant.key != target.key:
            yield Obstacle(
                code="instants_archived",
                why=f"The newer {instant.action.value} {instant.requested} is archived.",
                remedy="Choose a later instant.",
                instant=instant.requested,
            )
            return


def _savepointed(moment: Snapshot, undone: Sequence[InstantFiles]) -> Iterator[Obstacle]:
    times = {files.instant.requested for files in undone}
    for one in moment.timeline.active.savepoints():
        if one.requested in times:
            yield Obstacle(
                code="savepointed",
                why=(
                    f"The savepoint {one.requested} protects instants that the restore would undo."
                ),
                remedy="Delete it first.",
                instant=one.requested,
            )


def _cleaned(
    context: Context, moment: Snapshot, target: Instant, undone: Sequence[InstantFiles]
) -> Iterator[Obstacle]:
    """Whatever a savepoint has named has to be there, and whatever is seen without what is undone.

    Only what cleans say of themselves tells of files that are gone and that nobody has named.
    """
    active = moment.timeline.active
    gone = frozenset(files.instant.requested for files in undone)
    own = next((one for one in active.savepoints() if one.requested == target.requested), None)
    if own is not None:
        listed = savepoint.decode(active.read(own), active.path(own)).partition_metadata
        needed = {partition: one.savepoint_data_file for partition, one in listed.items()}
        for path in _missing(context, needed, gone):
            why = f"The file {path} of the savepoint is missing."
            yield Obstacle(code="files_cleaned", why=why, remedy="Choose another savepoint.")
            return
    past = Past.of(all_files(moment), visibility_without(moment, gone))
    missed = first_missed(moment, past, target.requested)
    if missed is not None:
        yield Obstacle(
            code="files_cleaned",
            why=missed.why,
            remedy="Choose a later instant, or a savepoint.",
            instant=target.requested,
        )


def _missing(
    context: Context, needed: Mapping[str, Sequence[str]], gone: frozenset[str]
) -> Iterator[str]:
    """Named files that are not there. Java names logs of later writes, which are not needed."""
    there = StorageListing(context.storage).files(sorted(needed))
    for partition in sorted(needed):
        names = {file.name for file in there[partition]}
        for name in needed[partition]:
            file = parse_file_name(name, 0)
            if name not in names and (file is None or file.instant not in gone):
                yield f"{partition}/{name}" if partition else name


def _being_indexed(moment: Snapshot) -> Iterator[Obstacle]:
    for one in moment.timeline.active.pending((Action.INDEXING,)):
        yield Obstacle(
            code="index_pending",
            why=f"The indexing {one.requested} reads instants that the restore would undo.",
            remedy="Wait until it ends, or drop its index.",
            instant=one.requested,
        )


def _alive(
    context: Context, moment: Snapshot, undone: Sequence[InstantFiles]
) -> Iterator[Obstacle]:
    """Writers at work hold a restore off, and so do services on what it would take back."""
    for files in undone:
        requested = files.instant.requested
        if files.completed is not None:
            continue
        live = live_attempt(context, read_ledger(context.storage, requested))
        if live is not None:
            age = age_of(context, moment, requested)
            yield Obstacle(
                code="instant_held",
                why=(
                    f"{live} is running the {files.begun_as.value} {requested}, which "
                    f"started {age} ago."
                ),
                remedy="Wait until it ends.",
                instant=requested,
                passes=True,
            )
