"""Statement options: what a statement says of its write, and what its session says."""

from collections.abc import Mapping

import pyarrow as pa
from pyarrow.types import is_temporal

from lakewarden.engine.services.options import ALL_SETTINGS, check_values, understood
from lakewarden.engine.table.config import PartitionKind, TableConfig
from lakewarden.storage_options import is_for_storage

# Settings without which rows are the same, in a table whose paths have the values of its columns,
# and in one that has no times in its keys.
_VALUES_OF_PATHS = "hoodie.datasource.read.extract.partition.values.from.path"
_MOMENTS_AS_TEXT = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"


def session_settings(details: Mapping[str, object]) -> dict[str, str]:
    """What the session sets for all of its tables; some of it may be for something else."""
    return _texts(details.get("settings"))


def refuse_others(session: Mapping[str, str], config: TableConfig, columns: pa.Schema) -> None:
    """Refuse settings of the session that would change this table's rows or files."""
    keys = (name.partition(".")[0] for name in config.key_fields)
    has_moments = any(is_temporal(columns.field(name).type) for name in keys)
    has_plain_paths = all(one.kind is PartitionKind.SIMPLE for one in config.partitions.fields)
    same = {
        _VALUES_OF_PATHS: has_plain_paths,
        _MOMENTS_AS_TEXT: not has_moments,
    }
    check_values({key: value for key, value in session.items() if not same.get(key)})


def said_options(
    path: str, options: Mapping[str, str], details: Mapping[str, object]
) -> dict[str, str]:
    """What the statement itself says about the write, besides how to get to the storage."""
    given = {**_texts(details.get("write_options")), **options}
    # A DataFrameWriter may say again where the table is.
    return {
        key: value
        for key, value in given.items()
        if not is_for_storage(key) and (key, value) != ("path", path)
    }


def write_options(said: Mapping[str, str]) -> dict[str, str]:
    """Those that the engine's writes take; one that means nothing at all is refused by name."""
    return {key: str(value) for key, value in understood(said, ALL_SETTINGS).items()}


def _texts(values: object) -> dict[str, str]:
    assert values is None or isinstance(values, Mapping)
    return {str(key): str(value) for key, value in (values or {}).items()}
