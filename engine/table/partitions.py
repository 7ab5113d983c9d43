"""Partition paths: where a table puts its partitions, and which values a path stands for."""

from dataclasses import dataclass
from enum import Enum
from urllib.parse import unquote

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"


class PartitionKind(Enum):
    """How a partition value becomes a path segment."""

    SIMPLE = "SIMPLE"
    TIMESTAMP = "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One partition column."""

    name: str
    kind: PartitionKind = PartitionKind.SIMPLE


@dataclass(frozen=True, slots=True)
class PartitionScheme:
    """How a table's partition paths are spelled."""

    fields: tuple[PartitionField, ...] = ()
    hive_style: bool = False
    url_encoded: bool = False
    # Old tables do not say it; then a segment tells by itself.
    says_style: bool = True

    def values(self, path: str) -> dict[str, str | None]:
        """The plain column values a path spells out; None stands for null.

        A column is skipped where the path does not tell its value: formatted timestamps, and
        values with slashes that made more levels than there are columns.
        """
        if not self.fields:
            return {}
        segments = path.split("/")
        if len(segments) != len(self.fields):
            return {}
        return {
            field.name: self._value(field, segment)
            for field, segment in zip(self.fields, segments, strict=True)
            if field.kind is PartitionKind.SIMPLE
        }

    def _value(self, field: PartitionField, segment: str) -> str | None:
        # Where columns are not named, a value may well begin like a name.
        prefix = f"{field.name}=" if self.hive_style or not self.says_style else ""
        text = segment.removeprefix(prefix)
        if text == DEFAULT_PARTITION:
            return None
        return unquote(text) if self.url_encoded else text


def parse_partition_fields(text: str, *, timestamp_keys: bool) -> tuple[PartitionField, ...]:
    """The fields of `hoodie.table.partition.fields`; custom tables spell `name:KIND`."""
    fields = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, kind = item.partition(":")
        default = PartitionKind.TIMESTAMP if timestamp_keys else PartitionKind.SIMPLE
        fields.append(PartitionField(name, PartitionKind(kind.upper()) if kind else default))
    return tuple(fields)
