"""Hostile tables: one file of a sound table names a place that is none of the table's data."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replace_in

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import (
    clean,
    commit,
    compaction,
    indexing,
    replace,
    restore,
    rollback,
    savepoint,
)
from lakewarden.engine.formats.instant_metadata.clean import CleanFile, CleanPlan
from lakewarden.engine.formats.instant_metadata.commit import CommitMetadata, WriteStat
from lakewarden.engine.formats.instant_metadata.compaction import (
    CompactionOperation,
    CompactionPlan,
)
from lakewarden.engine.formats.instant_metadata.indexing import IndexPartition, IndexPlan
from lakewarden.engine.formats.instant_metadata.replace import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    ReplaceCommitMetadata,
    RequestedReplace,
)
from lakewarden.engine.formats.instant_metadata.restore import RestorePlan
from lakewarden.engine.formats.instant_metadata.rollback import (
    InstantReference,
    RollbackPlan,
    RollbackRequest,
)
from lakewarden.engine.formats.instant_metadata.savepoint import (
    SavepointMetadata,
    SavepointPartition,
)
from lakewarden.engine.metadata.encoding.records import group_log
from lakewarden.engine.metadata.entries.changes import NewFile, TableChange
from lakewarden.engine.metadata.entries.content import files_entries

# Of what is planned and pending, and of writes that are dead.
PENDING = "20260101000000000"
DEAD = "20260102000000000"
LINK = "way_out"
CANARY = f"c4a7a817-0000-0000-0000-000000000000-0_0-0-1_{DEAD}.parquet"

_TIMELINE = ".hoodie/timeline"
_DEAD_WRITE = {
    f"{_TIMELINE}/{DEAD}.deltacommit.{state}": b"" for state in ("requested", "inflight")
}

Operation = Callable[[Table], object]


@dataclass(frozen=True, slots=True)
class Scene:
    """What a hostile file has to know of the table it is put into."""

    # A folder beside the table, with files in it.
    outside: str
    partition: str
    completed: str
    completed_path: str
    properties: str


@dataclass(frozen=True, slots=True)
class Hostile:
    """Files that are put into a table, and which of them is to be named in the refusal."""

    name: str
    files: Mapping[str, bytes]
    said_by: str
    operations: tuple[str, ...] = field(default=("clean",))


OPERATIONS: Mapping[str, Operation] = {
    "read": lambda table: table.read_arrow(),
    "list": lambda table: table.read_arrow(use_metadata=False),
    "changes": lambda table: table.changes_arrow(since="0"),
    "write": lambda table: table.upsert([{"id": "z", "v": 1, "p": "p"}]),
    "clean": lambda table: table.clean(),
    "compact": lambda table: table.compaction.run(PENDING),
    "compact logs": lambda table: table.log_compaction.run(PENDING),
    "cluster": lambda table: table.clustering.run(PENDING),
    "roll back": lambda table: table.rollback_failed_writes(),
    "restore": lambda table: table.restore(PENDING),
    "sweep": lambda table: table.sweep(),
    "lookup": lambda table: table.lookup(["a"]),
    "validate": lambda table: table.validate(),
    "drop index": lambda table: table.drop_index("column_stats"),
    "archive": lambda table: table.archive(),
}


def places(scene: Scene) -> dict[str, str]:
    """Places out of the data of a table, by how they get there."""
    return {
        "dots": "../outside",
        "dots further in": f"{scene.partition}/../../outside",
        "absolute": scene.outside,
        "own files": ".hoodie/timeline",
        "own files in capitals": ".HOODIE",
        "link": LINK,
        "nul": "p\0x",
        "newline": "p\nx",
        "backslash": "..\\outside",
        "percent": "%2e%2e/outside",
        "nothing between": "p//x",
        "long": "x" * 5_000,
    }


def hostile_tables(scene: Scene) -> Iterator[Hostile]:
    """Every field that names a place, with every way out."""
    for way, place in places(scene).items():
        for hostile in (*_plans(place), *_completed(scene, place), *_others(scene, place)):
            yield Hostile(
                f"{hostile.name}: {way}", hostile.files, hostile.said_by, hostile.operations
            )
        if way != "link":
            yield from _properties(scene, way, place)


def _plan(name: str, action: str, content: bytes, *operations: str) -> Hostile:
    path = f"{_TIMELINE}/{PENDING}.{action}.requested"
    return Hostile(name, {path: content}, path, operations)


def _plans(place: str) -> Iterator[Hostile]:
    yield _plan("clean, partition", "clean", _clean({place: (CANARY,)}), "clean", "write")
    yield _plan("clean, file", "clean", _clean({"p": (f"{place}/{CANARY}",)}), "clean")
    old = CleanPlan(
        policy="KEEP_LATEST_COMMITS", files_to_be_deleted_per_partition={place: (CANARY,)}
    )
    yield _plan("clean of version 1", "clean", clean.encode_plan(old), "clean")
    gone = CleanPlan(policy="KEEP_LATEST_COMMITS", partitions_to_be_deleted=(place,))
    yield _plan("clean, whole partition", "clean", clean.encode_plan(gone), "clean")
    for name, plan in (
        ("partition", _rollback(place, CANARY)),
        ("file", _rollback("p", f"{place}/{CANARY}")),
        ("target", _rollback("p", CANARY, place)),
    ):
        known = _plan(f"rollback, {name}", "rollback", plan, "roll back", "clean")
        yield replace_in(known, files={**known.files, **_DEAD_WRITE})
    undone = RestorePlan(
        instants_to_rollback=(InstantReference(commit_time=place, action="commit"),),
        savepoint_to_restore_timestamp=PENDING,
    )
    yield _plan("restore, instant", "restore", restore.encode_plan(undone), "restore")
    for action, service in (("compaction", "compact"), ("logcompaction", "compact logs")):
        for field_name, operation in _operations(place).items():
            plan = compaction.encode_plan(CompactionPlan(operations=(operation,)))
            yield _plan(f"{action}, {field_name}", action, plan, service)
    for field_name, slice_ in _slices(place).items():
        requested = RequestedReplace(
            operation_type="CLUSTER",
            clustering_plan=ClusteringPlan(input_groups=(ClusteringGroup(slices=(slice_,)),)),
        )
        content = replace.encode_plan(requested)
        yield _plan(f"clustering, {field_name}", "clustering", content, "cluster")


def _completed(scene: Scene, place: str) -> Iterator[Hostile]:
    for name, stat in _stats(place).items():
        written = CommitMetadata(partition_to_write_stats={stat.partition_path or "p": (stat,)})
        content = commit.encode(written)
        files = {scene.completed_path: content}
        yield Hostile(f"commit, {name}", files, scene.completed_path, ("changes", "validate"))
    replaced = ReplaceCommitMetadata(partition_to_replace_file_ids={place: ("f-0",)})
    path = f"{_TIMELINE}/{PENDING}_{PENDING}.replacecommit"
    content = replace.encode(replaced)
    yield Hostile("replace commit, partition", {path: content}, path, ("read", "write"))
    for name, partition, file in (("partition", place, CANARY), ("file", "p", f"{place}/{CANARY}")):
        listed = SavepointPartition(partition_path=partition, savepoint_data_file=(file,))
        kept = SavepointMetadata(savepointed_at=0, partition_metadata={partition: listed})
        path = f"{_TIMELINE}/{scene.completed}_{scene.completed}.savepoint"
        files = {path: savepoint.encode(kept)}
        yield Hostile(f"savepoint, {name}", files, path, ("clean", "validate"))


def _others(scene: Scene, place: str) -> Iterator[Hostile]:
    path = f".hoodie/.temp/{DEAD}/MARKERS0"
    lines = f"{place}/{CANARY}.marker.CREATE\n".encode()
    if "\n" not in place:
        yield Hostile("marker", {path: lines, **_DEAD_WRITE}, path, ("roll back", "clean"))
    path = f".hoodie/.lakewarden/sweeps/1.{DEAD}.json"
    swept = {"format": 1, "kind": "sweep", "instant": DEAD, "due_ms": 1, "partitions": [place]}
    ledger = f".hoodie/.lakewarden/ledger/{DEAD}/000001.json"
    entry = {"format": 1, "kind": "cancelled", "instant": DEAD, "action": "deltacommit"}
    entry |= {"owner": "o", "by": "b", "reason": "r", "at_ms": 1}
    cancelled = {ledger: json.dumps(entry).encode()}
    yield Hostile(
        "sweep", {path: json.dumps(swept).encode(), **cancelled}, path, ("sweep", "clean")
    )
    entry |= {"partitions": [place]}
    yield Hostile("ledger", {ledger: json.dumps(entry).encode()}, ledger, ("validate", "clean"))
    yield from _listed(scene, place)
    plan = IndexPlan(index_partition_infos=(IndexPartition(metadata_partition_path=place),))
    content = indexing.encode_plan(plan)
    yield _plan("indexing, partition", "indexing", content, "write", "drop index")


def _listed(scene: Scene, place: str) -> Iterator[Hostile]:
    """What the metadata table lists: partitions, and files of them."""
    log = f".hoodie/metadata/files/.files-0000-0_{scene.completed}.log.2_9-9-9"
    for name, file in (
        ("partition", NewFile(place, CANARY, 100)),
        ("file", NewFile("p", f"{place}/{CANARY}", 100)),
    ):
        change = TableChange(instant=scene.completed, new_files=(file,))
        ((_, entries),) = files_entries(change).routed(1)
        content = group_log("files", entries, scene.completed, 0)
        said_by = ".hoodie/metadata/files"
        yield Hostile(f"metadata table, {name}", {log: content}, said_by, ("read", "write"))


def _properties(scene: Scene, way: str, place: str) -> Iterator[Hostile]:
    path = ".hoodie/hoodie.properties"
    for key in (
        "hoodie.timeline.path",
        "hoodie.timeline.history.path",
        "hoodie.table.index.defs.path",
        "hoodie.table.metadata.partitions",
        "hoodie.table.metadata.partitions.inflight",
    ):
        value = place.encode("unicode_escape").decode().replace("\\x00", "\\u0000")
        lines = [line for line in scene.properties.splitlines() if not line.startswith(f"{key}=")]
        content = "\n".join([*lines, f"{key}={value}", ""]).encode()
        operations = ("read", "write", "drop index", "archive")
        yield Hostile(f"{key}: {way}", {path: content}, path, operations)


def _clean(files: Mapping[str, tuple[str, ...]]) -> bytes:
    paths = {
        partition: tuple(CleanFile(file_path=name) for name in names)
        for partition, names in files.items()
    }
    plan = CleanPlan(policy="KEEP_LATEST_COMMITS", file_paths_to_be_deleted_per_partition=paths)
    return clean.encode_plan(plan)


def _rollback(partition: str, address: str, target: str = DEAD) -> bytes:
    request = RollbackRequest(partition_path=partition, files_to_be_deleted=(address,))
    reference = InstantReference(commit_time=target, action="deltacommit")
    plan = RollbackPlan(instant_to_rollback=reference, rollback_requests=(request,))
    return rollback.encode_plan(plan)


def _operations(place: str) -> dict[str, CompactionOperation]:
    def operation(**fields: object) -> CompactionOperation:
        known = {"base_instant_time": DEAD, "file_id": "f-0", "partition_path": "p"}
        return CompactionOperation(**{**known, **fields})  # type: ignore[arg-type]

    log = f".f-0_{DEAD}.log.1_0-0-1"
    return {
        "partition": operation(partition_path=place, data_file_path=CANARY),
        "file id": operation(file_id=f"{place}/f", delta_file_paths=(log,)),
        "base file": operation(data_file_path=f"{place}/{CANARY}"),
        "log": operation(delta_file_paths=(f"{place}/{log}",)),
    }


def _slices(place: str) -> dict[str, ClusteringSlice]:
    return {
        "partition": ClusteringSlice(file_id="f-0", partition_path=place, data_file_path=CANARY),
        "file": ClusteringSlice(
            file_id="f-0", partition_path="p", data_file_path=f"{place}/{CANARY}"
        ),
    }


def _stats(place: str) -> dict[str, WriteStat]:
    path = f"p/{CANARY}"
    return {
        "partition": WriteStat(file_id="f-0", path=f"{place}/{CANARY}", partition_path=place),
        "path": WriteStat(file_id="f-0", path=f"{place}/{CANARY}", partition_path="p"),
        "file id": WriteStat(file_id=f"{place}/f", path=path, partition_path="p"),
        "base file": WriteStat(
            file_id="f-0", path=path, partition_path="p", prev_base_file=f"{place}/x.parquet"
        ),
    }
