"""The outcome: which files a partition's statistics are about once a write has completed."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from lakewarden.engine.file_groups.listing import StorageListing
from lakewarden.engine.file_groups.slices import (
    FileGroup,
    FileGroupId,
    file_groups,
    load_visibility,
)
from lakewarden.engine.formats.instant_metadata.commit import WriteStat
from lakewarden.engine.metadata.entries.changes import NewFile
from lakewarden.engine.table.config import load_config
from lakewarden.engine.timeline.timeline import Timeline
from lakewarden.engine.write.files.spec import WrittenFile
from lakewarden.engine.write.outcome import live_files, table_change
from tests.engine.transaction.transaction_table import TransactionTable

F1, F2, NEW = (FileGroupId("p=a", name) for name in ("f1", "f2", "new"))
NO_KEYS = pa.array([], pa.string())


def groups_of(world: TransactionTable) -> list[FileGroup]:
    timeline = Timeline.load(world.storage, load_config(world.storage).layout)
    visibility = load_visibility(timeline.active, timeline, names_decide=False)
    listed = StorageListing(world.storage).files(["p=a"])
    return list(file_groups("p=a", listed["p=a"], visibility))


def made(key: FileGroupId, name: str, *, is_log: bool = False) -> WrittenFile:
    stat = WriteStat(file_id=key.file_id, log_files=(name,) if is_log else None)
    return WrittenFile(key, stat, NewFile(key.partition, name, 1), NO_KEYS, NO_KEYS)


def live(
    *files: WrittenFile,
    replaced: Mapping[str, tuple[str, ...]] | None = None,
    consumed: Mapping[FileGroupId, frozenset[str]] | None = None,
) -> dict[str, set[str]]:
    """The live files on a table with the file groups f1 and f2, whose files go by these names."""
    world = TransactionTable()
    world.writer().write("f1", "f2")
    groups = groups_of(world)
    names = {name: group.key.file_id for group in groups for name in names_of(group)}
    known = {file_id: name for name, file_id in names.items()}
    taken = {
        key: frozenset(known.get(name, name) for name in gone)
        for key, gone in (consumed or {}).items()
    }
    found = live_files(groups, files, replaced or {}, taken)
    return {
        partition: {names.get(name, name) for name in there} for partition, there in found.items()
    }


def names_of(group: FileGroup) -> list[str]:
    base = group.latest_merged().base_file
    return [] if base is None else [base.name]


def test_a_new_base_file_takes_the_place_of_its_group() -> None:
    assert live(made(F1, "base")) == {"p=a": {"base", "f2"}}


def test_a_log_comes_beside_what_its_group_has() -> None:
    assert live(made(F1, "log", is_log=True)) == {"p=a": {"f1", "log", "f2"}}


def test_a_new_group_comes_beside_the_others() -> None:
    assert live(made(NEW, "base")) == {"p=a": {"f1", "f2", "base"}}


def test_replaced_groups_are_gone_with_all_that_they_have() -> None:
    assert live(made(NEW, "base"), replaced={"p=a": ("f1", "f2")}) == {"p=a": {"base"}}
    assert live(replaced={"p=a": ("f1",)}) == {"p=a": {"f2"}}


def test_a_service_replaces_what_it_has_consumed_and_nothing_newer() -> None:
    assert live(made(F1, "base"), consumed={F1: frozenset({"f1"})}) == {"p=a": {"base", "f2"}}
    assert live(made(F1, "base"), consumed={F1: frozenset({"x"})}) == {"p=a": {"f1", "base", "f2"}}


def test_only_partitions_that_were_touched_are_told_of() -> None:
    elsewhere = FileGroupId("p=b", "new")
    assert live(made(elsewhere, "base")) == {"p=b": {"base"}}


def moved(
    is_global: bool,
) -> tuple[list[tuple[str, list[str]]], list[tuple[FileGroupId, list[str]]]]:
    """What an index is told of keys: a has moved to another partition, b has gone."""
    keys = pa.array(["a", "b"], pa.string())
    there, here = FileGroupId("p=b", "f9"), made(F1, "base")
    left = replace(here, left=keys)
    arrived = replace(made(there, "base"), arrived=keys.slice(0, 1))
    change = table_change("1", [left, arrived], is_global=is_global)
    return (
        [(one.partition, one.keys.to_pylist()) for one in change.removed],
        [(one.home, one.keys.to_pylist()) for one in change.located],
    )


def test_a_key_that_has_moved_is_gone_only_where_an_index_knows_keys_of_one_partition() -> None:
    located = [(FileGroupId("p=b", "f9"), ["a"])]
    assert moved(is_global=True) == ([("p=a", ["b"])], located)
    assert moved(is_global=False) == ([("p=a", ["a", "b"])], located)
