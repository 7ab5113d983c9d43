"""The Avro schema of delete records: a key, its partition, and a wrapped ordering value.

The order of the wrappers is their number in the file. `ArrayWrapper` holds the values of several
ordering fields, each wrapped in turn.
"""

import json

_NAMESPACE = "org.apache.hudi.avro.model"
_TEXT = {"type": "string", "avro.java.string": "String"}
_WRAPPED: dict[str, object] = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": _TEXT,
    "DateWrapper": {"type": "int", "logicalType": "date"},
    "DecimalWrapper": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicrosWrapper": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicrosWrapper": {"type": "long", "logicalType": "timestamp-micros"},
}


def _record(name: str, *fields: dict[str, object]) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _optional(name: str, kind: object) -> dict[str, object]:
    return {"name": name, "type": ["null", kind], "default": None}


def _wrapper(name: str, kind: object) -> dict[str, object]:
    return _record(name, {"name": "value", "type": kind})


def _array_wrapper() -> dict[str, object]:
    date = _wrapper("LocalDateWrapper", {"type": "int", "logicalType": "date"})
    items = ["null", *_WRAPPED, date]
    return _record("ArrayWrapper", _optional("wrappedValues", {"type": "array", "items": items}))


def _delete_record() -> dict[str, object]:
    wrappers = [_wrapper(name, kind) for name, kind in _WRAPPED.items()]
    ordering = ["null", *wrappers, _array_wrapper()]
    return {
        **_record(
            "HoodieDeleteRecord",
            _optional("recordKey", _TEXT),
            _optional("partitionPath", _TEXT),
            {"name": "orderingVal", "type": ordering, "default": None},
        ),
        "namespace": _NAMESPACE,
    }


# The union branches in file order; the first is null, and the last inside an array is a date.
INT_WRAPPER = "IntWrapper"
ARRAY_WRAPPER = "ArrayWrapper"
BRANCHES = ("null", *_WRAPPED, ARRAY_WRAPPER)
ARRAY_BRANCHES = ("null", *_WRAPPED, "LocalDateWrapper")
DELETE_RECORD_SCHEMA = json.dumps(_delete_record())
DELETE_LIST_SCHEMA = json.dumps(
    _record(
        "HoodieDeleteRecordList",
        {"name": "deleteRecordList", "type": {"type": "array", "items": _delete_record()}},
    )
)
