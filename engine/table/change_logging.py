"""Change logging: what a table's writes record of the rows that they change."""

from collections.abc import Mapping
from enum import Enum

from lakewarden.engine.kernel.errors import InvalidRequest

CDC_ENABLED = "hoodie.table.cdc.enabled"
CDC_LOGGING_MODE = "hoodie.table.cdc.supplemental.logging.mode"


class LoggingMode(Enum):
    """Which images of a changed row a log of change data holds."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"


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
