"""Java's cleans: those it left pending are carried out, and what we plan is what it had planned."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden import Table
from lakewarden.engine.formats.instant_metadata import clean as payload
from lakewarden.engine.formats.instant_metadata.clean import CleanMetadata, CleanPlan
from lakewarden.engine.services.clean.draft import CleanRequest, content_of, draft_clean
from lakewarden.engine.services.clean.run import clean
from lakewarden.engine.services.retention.settings import retention_of
from lakewarden.engine.timeline.instants.instant import Action
from lakewarden.engine.transaction.state.context import load_for_writing
from tests.canonical import canonical_rows
from tests.engine.services.clean.golden_cleans import context_of
from tests.golden_tables import GoldenDocument, GoldenTable


def forget_clean(path: Path) -> CleanPlan:
    """Take the clean off the timeline; its plan."""
    folder = path / ".hoodie" / "timeline"
    (requested,) = folder.glob("*.clean.requested")
    plan = payload.decode_plan(requested.read_bytes(), requested.name)
    requested.unlink()
    return plan


def named(plan: CleanPlan) -> dict[str, list[str]]:
    listed = plan.file_paths_to_be_deleted_per_partition.items()
    return {
        partition: [(one.file_path or "").rpartition("/")[2] for one in files]
        for partition, files in listed
    }


def test_we_plan_what_java_has_planned(golden_copy: GoldenTable) -> None:
    path = golden_copy("cow_clean_requested")
    javas = forget_clean(path)
    context = context_of(path, hoodie__clean__commits__retained="1")
    drafted = draft_clean(
        context, load_for_writing(context), retention_of(context.settings), CleanRequest()
    )
    ours = content_of(context.storage, drafted)
    assert named(ours) == named(javas)
    blank = {"file_paths_to_be_deleted_per_partition": {}}
    assert replace(ours, **blank) == replace(javas, **blank)


@pytest.mark.parametrize("moved", [False, True])
def test_a_clean_that_java_left_is_carried_out(
    golden_copy: GoldenTable, golden_document: GoldenDocument, moved: bool, tmp_path: Path
) -> None:
    path = golden_copy("cow_clean_requested")
    if moved:
        path = path.rename(tmp_path / "elsewhere")
    table = Table(str(path))
    before = canonical_rows(table.read_arrow())
    (pending,) = table.timeline().pending((Action.CLEAN,))
    done = clean(context_of(path, hoodie__clean__commits__retained="10"))
    (finished,) = done.finished
    assert finished.instant == pending.requested
    assert finished.files_deleted == 6
    assert len(list(path.glob("p=*/*.parquet"))) == 12 - 6
    assert canonical_rows(table.read_arrow()) == before
    assert canonical_rows(table.read_arrow(use_metadata=False)) == before


def test_a_completed_clean_says_what_javas_says(golden_copy: GoldenTable) -> None:
    javas = completed(golden_copy("cow_clean_keep_latest_commits"))
    path = golden_copy("cow_clean_requested")
    clean(context_of(path, hoodie__clean__commits__retained="10"))
    ours = completed(path)
    assert shape(ours) == shape(javas)
    assert ours.total_files_deleted == 6


def shape(metadata: CleanMetadata) -> object:
    partitions = metadata.partition_metadata.values()
    return (
        metadata.version,
        metadata.bootstrap_partition_metadata,
        metadata.extra_metadata,
        sorted(metadata.partition_metadata),
        {(one.policy, one.is_partition_deleted, one.failed_delete_files) for one in partitions},
    )


def completed(path: Path) -> CleanMetadata:
    active = Table(str(path)).timeline()
    (instant,) = active.completed((Action.CLEAN,))
    metadata = payload.decode(active.read(instant), "clean")
    assert metadata.start_clean_time == instant.requested
    return metadata


def test_a_partition_that_java_would_remove_is_removed(golden_copy: GoldenTable) -> None:
    path = golden_copy("cow_clean_deleted_partition")
    folder = path / ".hoodie" / "timeline"
    (requested,) = folder.glob("*.clean.requested")
    javas = payload.decode_plan(requested.read_bytes(), requested.name)
    assert javas.partitions_to_be_deleted == ("p=c",)
    for file in folder.glob(f"{requested.name.partition('.')[0]}*"):
        if file != requested:
            file.unlink()
    done = clean(context_of(path))
    assert done.finished[0].partitions_deleted == ("p=c",)
    assert Table(str(path)).partitions() == ("p=a", "p=b")
