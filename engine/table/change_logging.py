"""Change logging: what a table's writes record of the rows that they change."""

import json
from collections.abc import Mapping
from enum import Enum

from lakewarden.engine.kernel.errors import InvalidRequest

CDC_ENABLED = "hoodie.table.cdc.enabled"
CDC_LOGGING_MODE = "hoodie.table.cdc.supplemental.logging.mode"


# The columns of a log of change data.
OPERATION, AT, BEFORE, AFTER, LOGGED_KEY = "op", "ts_ms", "before", "after", "record_key"


class LoggingMode(Enum):
    """Which images of a changed row a log of change data holds."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"

    @property
    def columns(self) -> tuple[str, ...]:
        """What a log has of a change."""
        if self is LoggingMode.OP_KEY_ONLY:
            return OPERATION, LOGGED_KEY
        if self is LoggingMode.DATA_BEFORE:
            return OPERATION, LOGGED_KEY, BEFORE
        return OPERATION, AT, BEFORE, AFTER


def logging_mode(properties: Mapping[str, str]) -> LoggingMode:
    """The mode of a table, whether or not it captures changes; Hudi takes either case."""
    text = properties.get(CDC_LOGGING_MODE, LoggingMode.DATA_BEFORE_AFTER.value)
    try:
        return LoggingMode(text.upper())
    except ValueError:
        raise InvalidRequest(
            "bad_logging_mode",
            what=f"There is no mode {text!r} of logging changes.",
            why=f"{CDC_LOGGING_MODE} is {', '.join(mode.value for mode in LoggingMode)}.",
            now="Set it to one of these.",
        ) from None


def captures_changes(properties: Mapping[str, str]) -> bool:
    """Whether the writes of a table log changes."""
    return properties.get(CDC_ENABLED, "").lower() == "true"


def change_schema_text(mode: LoggingMode, records_text: str) -> str:
    """The Avro schema of a log of change data, as Java has it; images are records of the table."""
    if mode is LoggingMode.OP_KEY_ONLY:
        texts = [{"name": name, "type": ["string", "null"]} for name in mode.columns]
        return _compact({"type": "record", "name": "Record", "fields": texts})
    image = json.loads(records_text)
    namespace = {"namespace": image.pop("namespace")} if "namespace" in image else {}
    # What a schema has defined once it only names.
    types = {BEFORE: image, AFTER: image["name"]}
    fields = [
        {"name": name, "type": ["null", types.get(name, "string")], "doc": "", "default": None}
        for name in mode.columns
    ]
    return _compact({"type": "record", "name": "CDC", **namespace, "doc": "", "fields": fields})


def _compact(schema: object) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
