"""What is left of a schema in a file is what it takes to read its records."""

import json

from lakewarden.engine.formats.avro.schema import written_schema


def test_what_readers_choose_for_themselves_is_left_out() -> None:
    text = {"type": "string", "avro.java.string": "String"}
    fields = [
        {"name": "doc", "type": ["null", text], "doc": "A name.", "default": None},
        {
            "name": "default",
            "type": {"type": "map", "values": "long", "avro.java.string": "String"},
        },
    ]
    schema = {"type": "record", "name": "doc", "doc": "", "fields": fields}
    kept = [
        {"name": "doc", "type": ["null", "string"]},
        {"name": "default", "type": {"type": "map", "values": "long"}},
    ]
    wanted = {"type": "record", "name": "doc", "fields": kept}
    assert json.loads(written_schema(json.dumps(schema))) == wanted
