"""Properties of made-up tables, as short as a test can say them."""

from lakewarden.engine.table.config import TableConfig, table_config

_BASE = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "9",
    "hoodie.timeline.layout.version": "2",
}
TIMEBASED = "hoodie.keygen.timebased."


def config_of(keys: str = "k", partitions: str = "", **properties: str) -> TableConfig:
    """A table's configuration; keyword names spell dots as double underscores."""
    return table_config(
        {
            **_BASE,
            "hoodie.table.recordkey.fields": keys,
            "hoodie.table.partition.fields": partitions,
            **{name.replace("__", "."): value for name, value in properties.items()},
        }
    )


def timebased(kind: str, output: str, **options: str) -> dict[str, str]:
    """The options of a timestamp key generator."""
    options = {
        "timestamp.type": kind,
        "output.dateformat": output,
        **{name.replace("_", "."): value for name, value in options.items()},
    }
    return {TIMEBASED + name: value for name, value in options.items()}
