"""Partition paths for writing: where each row goes, and never outside the table's folder."""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.engine.kernel.clock import LOCAL
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.column_types import column_at
from lakewarden.engine.table.config import (
    DEFAULT_PARTITION,
    PartitionField,
    PartitionKind,
    TableConfig,
)
from lakewarden.engine.table.keygen.java_dates import java_texts, unsupported_key_type
from lakewarden.engine.table.keygen.partition_times import partition_clock

# How partition columns of timestamps are spelled, which Hudi leaves to its front ends.
TIMESTAMPS_KEY = "lakewarden.partition.timestamps"
TIMESTAMPS_AS_TEXT = "text"
_SECONDS = "%Y-%m-%d %H:%M:%S"
SLASHED_DATES_KEY = "hoodie.datasource.write.slash.separated.date.partitioning"
_EXTRACTOR_KEY = "hoodie.table.partition_extractor_class"
_SLASHED_EXTRACTOR = "SlashEncodedDayPartitionValueExtractor"
# Hive's list, which Hudi has taken over.
_ENCODED = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_OWN_FOLDER = ".hoodie"


def partition_paths(
    rows: pa.Table, config: TableConfig, options: Mapping[str, str] | None = None
) -> pa.DictionaryArray:
    """The partition path of each row; options are those a table with CUSTOM keys does not store.

    Work is done once per distinct value. A path that would lead astray is refused, and so is one
    that two different values would have.
    """
    fields = config.partitions.fields
    if not fields:
        return _dictionary(np.zeros(len(rows), np.int64), [""])
    known = {**config.properties, **(options or {})}
    codes = np.zeros(len(rows), np.int64)
    segments: list[list[str]] = []
    for field in fields:
        own, texts = _segments(rows, field, config, known)
        codes = codes * len(texts) + own
        segments.append(texts)
    # Of all combinations only those that occur become paths.
    used, codes = np.unique(codes, return_inverse=True)
    paths = ["/".join(_combination(int(code), segments)) for code in used]
    for path in paths:
        _check(path)
    return _dictionary(codes, paths)


def _segments(
    rows: pa.Table, field: PartitionField, config: TableConfig, options: Mapping[str, str]
) -> tuple[np.ndarray, list[str]]:
    """For each row the number of its segment, and the segments."""
    column = column_at(rows, field.name)
    whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if pa.types.is_nested(whole.type):
        raise unsupported_key_type(whole.type, field.name)
    encoded = pc.dictionary_encode(whole, null_encoding="encode")
    values = encoded.dictionary
    if pa.types.is_timestamp(values.type) and options.get(TIMESTAMPS_KEY) == TIMESTAMPS_AS_TEXT:
        named = f"{field.name}=" if config.partitions.hive_style else ""
        return encoded.indices.to_numpy(zero_copy_only=False), [
            named + text for text in timestamp_texts(values)
        ]
    if field.kind is PartitionKind.TIMESTAMP:
        texts: list[str | None] = list(partition_clock(options).texts(values, field.name))
    else:
        texts = _plain_texts(values, field.name)
        _refuse_shared(texts, field, config, options)
    spell = _speller(field, config, options)
    # An array without values has no dictionary either.
    return encoded.indices.to_numpy(zero_copy_only=False), [spell(text) for text in texts] or [""]


def _plain_texts(values: pa.Array, name: str) -> list[str | None]:
    if pa.types.is_timestamp(values.type):
        raise InvalidRequest(
            "unsupported_partition_type",
            what=f"Partition column {name!r} is a timestamp.",
            why="Hudi writes it as a number in one front end and as a date in another.",
            now="Partition by a text or date column, or CREATE TABLE in SQL, which says how.",
            column=name,
            type=str(values.type),
        )
    texts: list[str | None] = java_texts(values, name).to_pylist()
    return texts


def timestamp_texts(values: pa.Array) -> list[str]:
    """As Hudi's SQL spells them: to the second, in the zone of the machine, always encoded."""
    micros = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()).to_pylist()
    return [
        DEFAULT_PARTITION
        if one is None
        else _encoded(f"{LOCAL.wall((one if one > 0 else one + 999) // 1000):{_SECONDS}}")
        for one in micros
    ]


def _encoded(text: str) -> str:
    return _ENCODED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _refuse_shared(
    texts: Sequence[str | None],
    field: PartitionField,
    config: TableConfig,
    options: Mapping[str, str],
) -> None:
    """Refuse values whose path is another value's, too: their rows would become each other's."""
    scheme = config.partitions
    is_slashed = len(scheme.fields) == 1 and _has_slashed_dates(options)
    # What stands before the last column ends at the first slash.
    ends = is_slashed or (not scheme.url_encoded and field is not scheme.fields[-1])
    for text in texts:
        if text in ("", DEFAULT_PARTITION):
            raise _shared(field.name, text, "Nulls have the same partition path")
        if text is not None and ends and "/" in text:
            raise _shared(field.name, text, "Other values with a slash give the same path")


def _shared(name: str, text: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        "ambiguous_partition_value",
        what=f"A row has the partition value {text!r} in {name}.",
        why=f"{why}, so two rows of one key would become one.",
        now="Nothing was written. Use null for no value, or another text.",
        column=name,
        value=text,
    )


def _speller(
    field: PartitionField, config: TableConfig, options: Mapping[str, str]
) -> Callable[[str | None], str]:
    scheme = config.partitions
    slashed = len(scheme.fields) == 1 and _has_slashed_dates(options)

    def spell(text: str | None) -> str:
        spelled = text or DEFAULT_PARTITION
        if scheme.url_encoded:
            spelled = _encoded(spelled)
        if scheme.hive_style:
            spelled = f"{field.name}={spelled}"
        return spelled.replace("-", "/") if slashed and spelled[0] != "-" else spelled

    return spell


def _has_slashed_dates(options: Mapping[str, str]) -> bool:
    """Java stores no such property, but the class that takes such paths apart."""
    stated = options.get(SLASHED_DATES_KEY)
    if stated is not None:
        return stated.strip().lower() == "true"
    return options.get(_EXTRACTOR_KEY, "").endswith(_SLASHED_EXTRACTOR)


def _combination(code: int, segments: list[list[str]]) -> list[str]:
    chosen = []
    for texts in reversed(segments):
        code, place = divmod(code, len(texts))
        chosen.append(texts[place])
    return chosen[::-1]


def _check(path: str) -> None:
    """Refuse what would not be one folder inside the table, for us or for Java."""
    first, *_ = segments = path.replace("\\", "/").split("/")
    if _CONTROL.search(path):
        raise _unsafe(path, "it has control characters")
    if not all(segments):
        raise _unsafe(path, "it has an empty part: a slash at its start, at its end, or twice")
    if "." in segments or ".." in segments:
        raise _unsafe(path, "a part of dots leads to another folder")
    if first.startswith(_OWN_FOLDER):
        raise _unsafe(path, "Hudi keeps its own files there")
    if ":" in first:
        raise _unsafe(path, "Java reads the text before a colon as a storage scheme")


def _unsafe(path: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        "unsafe_partition_path",
        what=f"A row has the partition path {path!r}.",
        why=f"That path is not allowed: {why}.",
        now="Nothing was written. Correct the value, or create the table with URL encoding.",
        path=path,
    )


def _dictionary(codes: np.ndarray, paths: list[str]) -> pa.DictionaryArray:
    """Codes into distinct paths: two values, like times of one day, may share one."""
    distinct, renumbered = np.unique(np.array(paths, dtype=object), return_inverse=True)
    indices = renumbered.astype(np.int32)[codes]
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int32()), pa.array(distinct.tolist(), pa.string())
    )
