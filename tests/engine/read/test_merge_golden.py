"""Slices of tables written by Java, merged block by block, have the rows that Java reads."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden.engine.formats.avro.arrow_types import arrow_schema
from lakewarden.engine.formats.avro.schema import parse_schema
from lakewarden.engine.formats.log.block import Block, BlockKind
from lakewarden.engine.formats.log.deletes import Deletes, deletes
from lakewarden.engine.formats.log.reader import effective_blocks, read_blocks, records
from lakewarden.engine.read.merge.entries import Records, log_entries
from lakewarden.engine.read.merge.fold import fold
from lakewarden.engine.read.merge.merge import Merger
from lakewarden.engine.table.merge_rules import MergeRules, merge_rules
from tests.canonical import canonical_rows, difference
from tests.golden_expectations import NEWEST_CORRECTIONS, corrected
from tests.golden_tables import GoldenDocument, GoldenTable

TABLES = [
    "mor_all_types",
    "mor_bucket_simple",
    "mor_commit_time_ordering",
    "mor_delete_marker",
    "mor_deletes",
    "mor_event_time_two_fields",
    "mor_log_compaction_completed",
    "mor_nbcc",
    "mor_parquet_log_blocks",
    "mor_partial_updates",
    "mor_payload_default",
    "mor_payload_overwrite_with_latest",
    "mor_payload_partial_update",
    "mor_record_positions",
    "v6_mor",
    "v8_mor_by_102",
]


@pytest.mark.parametrize("name", TABLES)
def test_merged_slices_have_the_rows_that_java_reads(
    name: str, golden: GoldenTable, golden_document: GoldenDocument
):
    document = golden_document(name)
    folder = golden(name)
    rules = rules_of(document["timeline"]["properties"])
    slices = [
        (folder / partition, slice_)
        for partition, view in document["fsview"]["partitions"].items()
        for slice_ in view["latest_merged"]
    ]
    blocks = [blocks_of(place, slice_) for place, slice_ in slices]
    schema = schema_of(*slices[0], [block for own in blocks for block in own])
    merged = [
        merged_slice(place, slice_, own, schema, rules)
        for (place, slice_), own in zip(slices, blocks, strict=True)
    ]
    expected = corrected(name, document["expected"]["snapshot"]["rows"], NEWEST_CORRECTIONS)
    assert difference(expected, canonical_rows(pa.concat_tables(merged))) == ""


def rules_of(properties: dict[str, str]) -> MergeRules:
    fields = properties.get("hoodie.table.ordering.fields") or properties.get(
        "hoodie.table.precombine.field", ""
    )
    return merge_rules(properties, tuple(name for name in fields.split(",") if name))


def blocks_of(place: Path, slice_: dict[str, Any]) -> tuple[Block, ...]:
    read = [
        block
        for name in slice_["log_files"]
        for block in read_blocks((place / name).read_bytes(), name)
    ]
    return effective_blocks(read, lambda _: True)


def schema_of(place: Path, slice_: dict[str, Any], blocks: list[Block]) -> pa.Schema:
    """The schema of the newest whole records; that of a base file if logs have only updates."""
    whole = [
        block for block in blocks if block.kind is not BlockKind.DELETE and not block.is_partial
    ]
    if whole:
        newest = max(whole, key=lambda block: block.instant)
        schema = arrow_schema(parse_schema(newest.schema_text, newest.path))
    else:
        schema = pq.read_schema(place / slice_["base_file"])
    return pa.schema([field.with_nullable(True).remove_metadata() for field in schema])


def merged_slice(
    place: Path,
    slice_: dict[str, Any],
    blocks: tuple[Block, ...],
    schema: pa.Schema,
    rules: MergeRules,
) -> pa.Table:
    parts = [part_of(block, schema) for block in blocks]
    merger = Merger(fold(log_entries(parts, schema, rules), rules))
    tables = []
    if slice_["base_file"]:
        base = pq.read_table(place / slice_["base_file"], partitioning=None)
        tables.append(merger.merge_batch(base.select(schema.names).cast(schema)))
    return pa.concat_tables([*tables, *merger.updated(), merger.rest()])


def part_of(block: Block, schema: pa.Schema) -> Records | Deletes:
    if block.kind is BlockKind.DELETE:
        return deletes(block)
    rows = records(block, schema.names)
    own = pa.schema([schema.field(name) for name in rows.column_names])
    return Records(rows.cast(own), is_partial=block.is_partial)
