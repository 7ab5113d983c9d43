"""Tables that tests of SQL make."""

from pathlib import Path

import pyarrow as pa

import lakewarden


def made(path: Path) -> None:
    schema = pa.schema([("id", pa.string())])
    lakewarden.Table.create(str(path), schema, ["id"]).upsert(pa.table({"id": ["1"]}))
