"""What stands in the way of a restore; all of it is reported at once, and nothing is changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.engine.file_groups.file_names import parse_file_name
from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.formats.instant_metadata import savepoint
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.read.query.removed_files import Past, first_missed
from lakewarden.engine.services.restore.metadata import pending_builds
from lakewarden.engine.services.retention.horizon import all_files, undone_by, visibility_without
from lakewarden.engine.snapshot import Snapshot
from lakewarden.engine.timeline.instants.instant import COMPLETED_WRITES, Instant, InstantFiles
from lakewarden.engine.timeline.ledger.ledger import read_ledger
from lakewarden.engine.transaction.attempts.take_over import working_attempt
from lakewarden.engine.transaction.rollback_request import shared_log
from lakewarden.engine.transaction.state.context import Context
from lakewarden.engine.transaction.state.live_attempt import live_attempt
from lakewarden.engine.transaction.state.pending_instants import age_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Something that stands in the way, and what can be done about it."""

    code: str
    why: str
    remedy: str
    instant: str | None = None
    # It goes away by itself.
    passes: bool = False


def target_of(snapshot: Snapshot, instant: str) -> Instant:
    """The completed write to go back to."""
    target = snapshot.completed_write(instant)
    if target is not None:
        return target
    is_there = bool(snapshot.timeline.active.with_time(instant))
    is_archived = not is_there and snapshot.timeline.completion_time(instant) is not None
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
    context: Context, snapshot: Snapshot, target: Instant, *, from_savepoint: bool = False
) -> tuple[Obstacle, ...]:
    """Why the table cannot be taken back to a write now; empty when it can be."""
    undone = undone_by(snapshot, target)
    return (
        *(_unsaved(snapshot, target) if from_savepoint else ()),
        *_archived(snapshot, target),
        *_savepointed(snapshot, undone),
        *_cleaned(context, snapshot, target, undone),
        *_sharing(snapshot, undone),
        *_being_indexed(context, snapshot),
        *_alive(context, snapshot, undone),
    )


def _sharing(snapshot: Snapshot, undone: Sequence[InstantFiles]) -> Iterator[Obstacle]:
    """Writes of when the table had version 6 cannot be taken out of the logs that they share."""
    for files in undone:
        log = shared_log(snapshot, files)
        if log is not None:
            yield Obstacle(
                code="shared_logs",
                why=f"The log {log} of {files.instant.requested} may hold rows of other writes.",
                remedy="Choose a later instant.",
                instant=files.instant.requested,
            )
            return


def _unsaved(snapshot: Snapshot, target: Instant) -> Iterator[Obstacle]:
    if all(one.requested != target.requested for one in snapshot.timeline.active.savepoints()):
        yield Obstacle(
            code="no_savepoint",
            why=f"The table has no savepoint at {target.requested}.",
            remedy="Choose an existing savepoint, or restore to the instant itself.",
            instant=target.requested,
        )


def _archived(snapshot: Snapshot, target: Instant) -> Iterator[Obstacle]:
    """An archival that was cut short leaves writes in both places, and those stay archived."""
    for instant in snapshot.timeline.archive.instants(target.requested, None):
        if instant.action in COMPLETED_WRITES and instant.key != target.key:
            yield Obstacle(
                code="instants_archived",
                why=f"The newer {instant.action.value} {instant.requested} is archived.",
                remedy="Choose a later instant.",
                instant=instant.requested,
            )
            return


def _savepointed(snapshot: Snapshot, undone: Sequence[InstantFiles]) -> Iterator[Obstacle]:
    times = {files.instant.requested for files in undone}
    for one in snapshot.timeline.active.savepoints():
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
    context: Context, snapshot: Snapshot, target: Instant, undone: Sequence[InstantFiles]
) -> Iterator[Obstacle]:
    """The files of savepoints have to be there, and those seen without the undone instants.

    Only the metadata of cleans names files that are gone and that no savepoint names.
    """
    active = snapshot.timeline.active
    gone = frozenset(files.instant.requested for files in undone)
    own = next((one for one in active.savepoints() if one.requested == target.requested), None)
    if own is not None:
        listed = savepoint.decode(active.read(own), active.path(own)).partition_metadata
        needed = {partition: one.savepoint_data_file for partition, one in listed.items()}
        for path in _missing(context, needed, gone):
            why = f"The file {path} of the savepoint is missing."
            yield Obstacle(code="files_cleaned", why=why, remedy="Choose another savepoint.")
            return
    past = Past.of(all_files(snapshot), visibility_without(snapshot, gone))
    missed = first_missed(snapshot, past, target.requested)
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


def _being_indexed(context: Context, snapshot: Snapshot) -> Iterator[Obstacle]:
    """Java would go on with its build; ours ends with the restore, and so do those that died."""
    for files in pending_builds(snapshot):
        instant = files.instant.requested
        ledger = snapshot.ledger(instant)
        builder = working_attempt(context, ledger, files)
        if builder is not None and ledger.last_claim is None:
            yield Obstacle(
                code="index_pending",
                why=f"{builder} is building an index by {instant}, from what would be undone.",
                remedy="Wait until it ends, or drop its index.",
                instant=instant,
                passes=True,
            )


def _alive(
    context: Context, snapshot: Snapshot, undone: Sequence[InstantFiles]
) -> Iterator[Obstacle]:
    """Writers at work hold a restore off, and so do services on what it would take back."""
    for files in undone:
        requested = files.instant.requested
        if files.completed is not None:
            continue
        live = live_attempt(context, read_ledger(context.storage, requested))
        if live is not None:
            age = age_of(context, snapshot, requested)
            yield Obstacle(
                code="instant_held",
                why=(
                    f"{live} is running the {files.started_as.value} {requested}, which "
                    f"started {age} ago."
                ),
                remedy="Wait until it ends.",
                instant=requested,
                passes=True,
            )
