"""Does a table's metadata tell the truth? Each check holds what Java says against the files.

A finding is a fact by which a Java reader can return wrong rows or break. A check of an index that
the table does not have finds nothing.
"""

import datetime
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import Row, SparkSession

from tests.canonical import difference
from tests.interop.judge.objects import Java, JavaTable, file_slices
from tests.interop.judge.reading import frame, read

KEY, PARTITION, FILE = "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"
NO_SKIPPING = {"hoodie.enable.data.skipping": "false"}
SKIPPING = {"hoodie.enable.data.skipping": "true"}
COMPARABLE = frozenset({"string", "int", "bigint"})  # types whose literals need no conversion

# Keys of statistics of partitions; those of expressions are longer.
PARTITION_KEY_LENGTH = 24
COMPLETED_READERS = {
    "commit": "readCommitMetadata",
    "deltacommit": "readCommitMetadata",
    "replacecommit": "readReplaceCommitMetadata",
    "clean": "readCleanMetadata",
    "rollback": "readRollbackMetadata",
    "restore": "readRestoreMetadata",
    "savepoint": "readSavepointMetadata",
}
PLAN_READERS = {
    "compaction": "readCompactionPlan",
    "logcompaction": "readCompactionPlan",
    "clean": "readCleanerPlan",
    "rollback": "readRollbackPlan",
    "restore": "readRestorePlan",
    "indexing": "readIndexPlan",
}
EPOCH = datetime.datetime(1970, 1, 1)


class Subject:
    """The table under examination, with its rows read in the plainest way once."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.path = path
        self.java = JavaTable(spark, path)
        self.indexes = self.java.indexes
        self.rows = read(spark, path, metadata=False, options=NO_SKIPPING)


Check = Callable[[Subject], Iterator[str]]


def validate(
    spark: SparkSession, table: str, *, checks: Collection[str] = ()
) -> dict[str, list[str]]:
    """Findings per check: those named, or all."""
    subject = Subject(spark, table)
    return {name: list(_findings(subject, CHECKS[name])) for name in checks or CHECKS}


def _findings(subject: Subject, check: Check) -> Iterator[str]:
    """What a check finds; that Java gives up while answering is a finding as well."""
    try:
        yield from check(subject)
    except Py4JJavaError as error:
        yield f"Java raised: {_first_line(error)}"


def instants_parse(subject: Subject) -> Iterator[str]:
    """Java can read the content of every active instant, of the metadata table's too."""
    yield from _unreadable_instants(subject.java)
    if subject.indexes:
        yield from _unreadable_instants(
            JavaTable(subject.spark, f"{subject.path}/.hoodie/metadata")
        )


def _unreadable_instants(java: JavaTable) -> Iterator[str]:
    timeline = java.client.getActiveTimeline()
    for instant in timeline.getInstants():
        readers = COMPLETED_READERS if instant.isCompleted() else PLAN_READERS
        reader = readers.get(instant.getAction())
        if reader is None or instant.isInflight():
            continue
        try:
            getattr(timeline, reader)(instant)
        except Exception as error:
            yield f"{instant} does not parse: {_first_line(error)}"


def listing_is_true(subject: Subject) -> Iterator[str]:
    """The metadata table lists what storage holds; only unfinished writes leave more behind."""
    if "files" not in subject.indexes:
        return
    stored, listed = (subject.java.files(from_table=answer) for answer in (False, True))
    timeline = subject.java.client.getActiveTimeline().filterCompletedInstants()
    completed = {instant.requestedTime() for instant in timeline.getInstants()}
    for path in sorted(listed.keys() - stored.keys()):
        yield f"listed, not stored: {path}"
    for path in sorted(stored.keys() - listed.keys()):
        if _instant_of(path) in completed:
            yield f"stored, not listed: {path}"
    for path in sorted(stored.keys() & listed.keys()):
        if stored[path] != listed[path]:
            yield f"{path} has {stored[path]} bytes, listed with {listed[path]}"


def slices_agree(subject: Subject) -> Iterator[str]:
    """File slices are the same from the metadata table and from storage."""
    if "files" not in subject.indexes:
        return
    stored, listed = (
        file_slices(subject.spark, subject.path, metadata=answer)["partitions"]
        for answer in (False, True)
    )
    for partition in sorted(stored.keys() | listed.keys()):
        if stored.get(partition) != listed.get(partition):
            yield f"{partition!r}: stored {stored.get(partition)}, listed {listed.get(partition)}"


def snapshot_agrees(subject: Subject) -> Iterator[str]:
    """Rows are the same with the metadata table and without."""
    found = difference(subject.rows, read(subject.spark, subject.path))
    if found:
        yield found


def record_index_is_true(subject: Subject) -> Iterator[str]:
    """Java finds every record where it is, and no record that is not there."""
    if "record_index" not in subject.indexes or _is_partitioned_record_index(subject):
        return
    places = defaultdict(set)
    for row in subject.rows:
        places[row[KEY]].add((row[PARTITION], _file_group_of(str(row[FILE]))))
    indexed = {
        entry["key"]: entry["recordIndexMetadata"]["partitionName"]
        for entry in _metadata_rows(subject, "type = 5")
        if entry["recordIndexMetadata"] is not None
    }
    for key in sorted(indexed.keys() - places.keys()):
        yield f"{key!r} is in the index only, in partition {indexed[key]!r}"
    for key, found in _looked_up(subject, sorted(places)).items():
        if found not in places[key]:
            yield f"{key!r} is in {sorted(places[key])}, the index says {found}"


def _looked_up(subject: Subject, keys: list[str]) -> dict[str, object]:
    """Places of keys by Java's own lookup, which reads only the shard that a key hashes to."""
    hudi = subject.java.hudi
    wanted = subject.spark._jvm.java.util.ArrayList(keys)
    source = subject.java.metadata(from_table=True)
    answer = source.readRecordIndexLocationsWithKeys(
        hudi.common.data.HoodieListData.eager(wanted)
    ).collectAsList()
    found: dict[str, object] = dict.fromkeys(keys)
    for pair in answer:
        place = pair.getRight()
        found[pair.getLeft()] = (place.getPartitionPath(), place.getFileId())
    return found


def _is_partitioned_record_index(subject: Subject) -> bool:
    definitions = subject.java.client.getIndexMetadata()
    if not definitions.isPresent():
        return False
    definition = definitions.get().getIndexDefinitions().get("record_index")
    options = dict(definition.getIndexOptions()) if definition is not None else {}
    return options.get("isPartitioned") == "true"


def column_stats_are_true(subject: Subject) -> Iterator[str]:
    """Counts and bounds of every latest base file cover its values."""
    if "column_stats" not in subject.indexes:
        return
    files = {
        (partition, name): pq.read_table(path, partitioning=None)
        for partition, name, path in subject.java.latest_base_files()
    }
    entries = _statistics(subject, files)
    columns = {column for _, column in entries}
    for file, content in files.items():
        for column in sorted(columns & set(content.column_names)):
            found = _untrue(subject, entries.get((file, column)), content[column])
            if found:
                yield f"{column} of {'/'.join(file)}: {found}"


def _statistics(
    subject: Subject, files: Mapping[tuple[str, str], pa.Table]
) -> dict[tuple[tuple[str, str], str], Java]:
    """Statistics by file and column, as Java looks them up."""
    array = subject.spark._jvm.java.util.ArrayList
    pair = subject.java.hudi.common.util.collection.Pair
    columns = sorted({name for content in files.values() for name in content.column_names})
    answer = subject.java.metadata(from_table=True).getColumnStats(
        array([pair.of(*file) for file in files]), array(columns)
    )
    return {
        (file, entry.getColumnName()): entry
        for file in files
        for entry in answer.get(pair.of(*file)) or ()
    }


def _untrue(subject: Subject, entry: Java | None, values: pa.ChunkedArray) -> str | None:
    """What is wrong with the statistics of some values, if anything."""
    if entry is None:
        return "no statistics" if len(values) else None
    if entry.getNullCount() != values.null_count or entry.getValueCount() != len(values):
        return f"{entry.getValueCount()} values, {entry.getNullCount()} of them null"
    if pa.types.is_nested(values.type):
        return None
    unwrap = subject.java.hudi.stats.ValueMetadata.getValueMetadata(
        entry.getValueType()
    ).unwrapValue
    low, high = (
        _comparable(subject, unwrap(bound)) for bound in (entry.getMinValue(), entry.getMaxValue())
    )
    known = [_comparable(subject, value) for value in values.drop_null().to_pylist()]
    known = [value for value in known if value == value]  # bounds say nothing about NaN
    if known and (low is None or high is None or low > min(known) or high < max(known)):
        return f"[{low!r}, {high!r}] does not cover [{min(known)!r}, {max(known)!r}]"
    return None


def _comparable(subject: Subject, value: object) -> object:
    """Dates as days, times as microseconds since the epoch, bytes as bytes, from both sides."""
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - EPOCH.date()).days
    if not isinstance(value, JavaObject):
        return value
    match value.getClass().getSimpleName():
        case "LocalDate":
            return value.toEpochDay()
        case "Date":
            return value.toLocalDate().toEpochDay()
        case "Instant":
            return value.getEpochSecond() * 1_000_000 + value.getNano() // 1_000
        case "Timestamp":
            return _comparable(subject, value.toInstant())
        case "LocalDateTime":
            in_utc = subject.spark._jvm.java.time.ZoneOffset.UTC
            return _comparable(subject, value.toInstant(in_utc))
        case "HeapByteBuffer":
            return bytes(subject.java.hudi.common.util.BinaryUtil.toBytes(value))
    return value.toString()


def data_skipping_loses_nothing(subject: Subject) -> Iterator[str]:
    """A filter on a column finds its rows with the help of all indexes."""
    if not subject.indexes - {"files"}:
        return
    kinds = frame(subject.spark, subject.path).dtypes
    for column in (name for name, kind in kinds if kind in COMPARABLE and name[:8] != "_hoodie_"):
        values = _extremes([row[column] for row in subject.rows])
        if not values:
            continue
        wanted = [row for row in subject.rows if row[column] in values]
        predicate = f"`{column}` IN ({', '.join(map(_literal, values))})"
        found = read(subject.spark, subject.path, where=predicate, options=SKIPPING)
        if difference(wanted, found):
            yield f"{predicate}: {len(wanted)} rows, {len(found)} with data skipping"


def _extremes(values: Sequence[int | str | None]) -> list[int | str]:
    """The least and the greatest of them."""
    known = [value for value in values if value is not None]
    return sorted({min(known), max(known)}) if known else []


def _literal(value: int | str) -> str:
    if isinstance(value, int):
        return str(value)
    text = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


def bloom_filters_are_true(subject: Subject) -> Iterator[str]:
    """Every latest base file has a filter, and it knows all keys of the file."""
    if "bloom_filters" not in subject.indexes:
        return
    source = subject.java.metadata(from_table=True)
    for partition, name, path in subject.java.latest_base_files():
        keys = pq.read_table(path, columns=[KEY], partitioning=None)[KEY].to_pylist()
        bloom = source.getBloomFilter(partition, name)
        if not bloom.isPresent():
            yield f"no filter for {partition}/{name}"
            continue
        denied = [key for key in keys if not bloom.get().mightContain(key)]
        if denied:
            yield f"the filter of {partition}/{name} denies {denied}"


def partition_stats_are_true(subject: Subject) -> Iterator[str]:
    """Bounds of a partition cover all of its rows, those in logs as well."""
    if "partition_stats" not in subject.indexes:
        return
    partitions = defaultdict(list)
    for row in frame(subject.spark, subject.path, metadata=False, options=NO_SKIPPING).collect():
        partitions[row[PARTITION]].append(row)
    for entry in _metadata_rows(subject, "type = 6"):
        stats = entry["ColumnStatsMetadata"]
        is_expression = len(entry["key"]) > PARTITION_KEY_LENGTH
        if stats is None or stats["isDeleted"] or is_expression:
            continue
        column, rows = stats["columnName"], partitions[stats["fileName"]]
        values = [_plain(row[column]) for row in rows if row[column] is not None]
        known = [value for value in values if value == value]  # bounds say nothing about NaN
        low, high = (_bound(stats, side) for side in ("minValue", "maxValue"))
        if known and (low is None or high is None or low > min(known) or high < max(known)):
            bounds = f"[{low!r}, {high!r}]"
            yield f"{column} of {stats['fileName']!r}: {bounds} does not cover {sorted(known)}"


# Ordinals of Java's value types whose bounds need their type to be understood.
DECIMAL, MILLISECONDS = 10, (15, 18)


def _bound(stats: Row, side: str) -> object:
    """One bound of a statistics record, out of the wrapper that names its type."""
    members = stats[side].asDict().values() if stats[side] is not None else ()
    values = (member["value"] if isinstance(member, Row) else member for member in members)
    value = next((value for value in values if value is not None), None)
    kind = stats["valueType"]
    if value is None or kind is None:
        return _plain(value)
    if kind["typeOrdinal"] == DECIMAL:
        scale = int(kind["additionalInfo"].split(",")[1])
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale)
    return value * 1000 if kind["typeOrdinal"] in MILLISECONDS else _plain(value)


def _plain(value: object) -> object:
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - EPOCH.date()).days
    return bytes(value) if isinstance(value, bytearray) else value


def secondary_indexes_are_true(subject: Subject) -> Iterator[str]:
    """Every row has its entry in each secondary index, and there is no other entry."""
    names = sorted(name for name in subject.indexes if name.startswith("secondary_index_"))
    if not names:
        return
    definitions = subject.java.client.getIndexMetadata().get().getIndexDefinitions()
    expected: Counter[str] = Counter()
    rows = frame(subject.spark, subject.path, metadata=False, options=NO_SKIPPING).collect()
    for name in names:
        (column,) = definitions.get(name).getSourceFields()
        expected.update(f"{_escaped(row[column])}${_escaped(row[KEY])}" for row in rows)
    found = Counter(
        entry["key"]
        for entry in _metadata_rows(subject, "type = 7")
        if entry["SecondaryIndexMetadata"] is not None
        and not entry["SecondaryIndexMetadata"]["isDeleted"]
    )
    yield from (f"entry {key!r} is missing" for key in sorted((expected - found).keys()))
    yield from (f"entry {key!r} is too much" for key in sorted((found - expected).keys()))


def _escaped(value: object) -> str:
    """A value as the secondary index spells it: what separates its two parts is escaped."""
    if value is None:
        return "\x00"
    text = str(_plain(value)) if not isinstance(value, bool) else str(value).lower()
    return text.replace("\\", "\\\\").replace("$", "\\$").replace("\x00", "\\\x00")


def _metadata_rows(subject: Subject, where: str) -> list:
    """Entries of the metadata table, always with all columns.

    After a read of some of them, every later write of Java in this JVM fails.
    """
    query = f"SELECT * FROM hudi_metadata('{subject.path}') WHERE {where}"
    return subject.spark.sql(query).collect()


def _instant_of(path: str) -> str:
    """The instant in the name of a data or log file."""
    name = path.rsplit("/", 1)[-1]
    instant = name.split("_")[1] if name.startswith(".") else name.rsplit("_", 1)[-1]
    return instant.split(".", 1)[0]


def _file_group_of(name: str) -> str:
    return name.split("_", 1)[0]


def _first_line(error: Exception) -> str:
    return str(getattr(error, "java_exception", error)).splitlines()[0]


CHECKS: dict[str, Check] = {
    "instants": instants_parse,
    "listing": listing_is_true,
    "slices": slices_agree,
    "snapshot": snapshot_agrees,
    "record_index": record_index_is_true,
    "column_stats": column_stats_are_true,
    "data_skipping": data_skipping_loses_nothing,
    "partition_stats": partition_stats_are_true,
    "secondary_index": secondary_indexes_are_true,
    "bloom_filters": bloom_filters_are_true,
}
