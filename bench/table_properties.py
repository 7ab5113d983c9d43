"""What `hoodie.properties` says of the tables to measure on: all are of version 9."""

import pyarrow as pa

from lakewarden.engine.formats.avro.arrow_types import avro_schema, record_names
from lakewarden.engine.formats.properties import CHECKSUM_KEY, table_checksum
from lakewarden.engine.table.config import TableType

_TIMELINE = {
    "hoodie.table.version": "9",
    "hoodie.table.initial.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.table.timeline.timezone": "UTC",
}


def table_properties(
    name: str,
    kind: TableType,
    columns: pa.Schema,
    *,
    key: str,
    ordering: str,
    partition_fields: str = "",
    metadata_partitions: str = "",
) -> dict[str, str]:
    """A table of Parquet files that merges by event time, with partition folders like `a=1`."""
    properties = {
        "hoodie.table.name": name,
        "hoodie.table.type": kind.value,
        **_TIMELINE,
        "hoodie.archivelog.folder": "archived",
        "hoodie.table.format": "native",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.recordkey.fields": key,
        "hoodie.table.ordering.fields": ordering,
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.table.keygenerator.type": "COMPLEX" if partition_fields else "NON_PARTITION",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.create.schema": avro_schema(columns, *record_names(name)),
        "hoodie.table.metadata.partitions": metadata_partitions,
        CHECKSUM_KEY: str(table_checksum("", name)),
    }
    if partition_fields:
        properties["hoodie.table.partition.fields"] = partition_fields
    return properties


def metadata_table_properties(table: str) -> dict[str, str]:
    """The metadata table of the table with that name."""
    name = f"{table}_metadata"
    return {
        "hoodie.table.name": name,
        "hoodie.table.type": TableType.MERGE_ON_READ.value,
        **_TIMELINE,
        "hoodie.archivelog.folder": "history",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.populate.meta.fields": "false",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.datasource.write.drop.partition.columns": "false",
        CHECKSUM_KEY: str(table_checksum("", name)),
    }
