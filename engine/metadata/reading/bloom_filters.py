"""The `bloom_filters` partition: for each base file, a filter of the record keys it can hold."""

from collections.abc import Sequence

from lakewarden.engine.formats.bloom import BloomFilter, parse_bloom
from lakewarden.engine.formats.hashing import bloom_filter_key
from lakewarden.engine.metadata.encoding.records import text_keys
from lakewarden.engine.metadata.reading.partition import MetadataPartition

BLOOM_COLUMN = "BloomFilterMetadata"


def file_filters(
    filters: MetadataPartition, partition: str, file_names: Sequence[str]
) -> dict[str, BloomFilter]:
    """The filters of those of the given base files that have one."""
    names = {bloom_filter_key(partition, name): name for name in file_names}
    newest = filters.lookup(list(names), [BLOOM_COLUMN]).newest()
    records = newest.values.column(BLOOM_COLUMN).to_pylist()
    return {
        names[key]: parse_bloom(record["bloomFilter"], record["type"], names[key])
        for key, record in zip(text_keys(newest.keys), records, strict=True)
        if record is not None and not record["isDeleted"]
    }
