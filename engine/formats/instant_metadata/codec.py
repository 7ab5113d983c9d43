"""Codecs: one kind of instant content as the bytes of an Avro file holding one record."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Generic, TypeVar

from lakewarden.engine.formats.avro.container import read_container, write_container
from lakewarden.engine.formats.avro.written_schema import written_schema
from lakewarden.engine.formats.instant_metadata.binding import record_of, value_of
from lakewarden.engine.kernel.errors import CorruptTable

Value = TypeVar("Value")

TORN_PLAN = "torn_plan"
# Smaller records are mostly numbers, and names that occur once.
_DEFLATED_BYTES_MIN = 1 << 10


@dataclass(frozen=True, slots=True)
class InstantCodec(Generic[Value]):
    """Reads and writes one kind of content; the schema is the one Java puts in its files.

    Whatever a content names is held against the border of the table when it is read.
    """

    kind: type[Value]
    schema: str
    # Refuses places outside of the table; the other argument is the file that names them.
    check_places: Callable[[Value, str], None]

    def decode(self, payload: bytes, path: str) -> Value:
        """The value in a file; `CorruptTable` when the bytes are no such record."""
        return self.checked(value_of(self.kind, read_container(payload, path), path), path)

    def checked(self, value: Value, path: str) -> Value:
        """The value, whose places are those of a table."""
        self.check_places(value, path)
        return value

    def decode_plan(self, payload: bytes, path: str) -> Value:
        """The plan in a file; `CorruptTable` with code `torn_plan` for an empty or torn file."""
        if not payload:
            raise torn_plan(path, "The file is empty.")
        try:
            plan = value_of(self.kind, read_container(payload, path), path)
        except CorruptTable as error:
            raise torn_plan(path, error.why) from error
        # A whole plan that leads out of the table is no torn one, which would just be passed over.
        return self.checked(plan, path)

    def encode(self, value: Value) -> bytes:
        """The file: Java's but for its size, as records are packed and schemas say no more than it.

        A reader brings its own schema, and takes what a record has by that of the file.
        """
        schema = written_schema(self.schema)
        return write_container(record_of(value), schema, deflated_from=_DEFLATED_BYTES_MIN)


def schema_text(name: str) -> str:
    """The text of the schema file `<name>.avsc` that lies beside the modules."""
    return resources.files(__package__).joinpath(f"{name}.avsc").read_text("utf-8").strip()


def torn_plan(path: str, reason: str) -> CorruptTable:
    return CorruptTable(
        TORN_PLAN,
        what=f"{path} does not hold a complete plan.",
        why=reason,
        now="Schedule a new plan. This one was never published: its writer died first.",
        path=path,
    )
