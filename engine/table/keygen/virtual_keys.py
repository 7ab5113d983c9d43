"""Virtual keys: those of tables that store no meta columns, made of the columns of each row.

What Hudi itself cannot keep true of such tables is refused here by name.
"""

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.table.change_logging import captures_changes
from lakewarden.engine.table.config import COMPLEX_GENERATORS, META_FIELDS_KEY, TableConfig
from lakewarden.engine.table.keygen.key_scheme import PLAIN_GENERATORS, KeyScheme, names_only_field


def virtual_keys(config: TableConfig) -> KeyScheme | None:
    """How the keys of a table that stores none are made of its columns; None where it stores them.

    Where a table does not say how its keys are spelled, they are plain values, as 1.x writes them.
    """
    if config.has_meta_fields:
        return None
    is_named = len(config.key_fields) > 1 or names_only_field(config, is_assumed=False)
    return KeyScheme(config.key_fields, is_named)


def refuse_unsupported_virtual_keys(config: TableConfig) -> None:
    """Refuse to write a table without meta columns that Hudi would not write either."""
    if config.has_meta_fields:
        return
    if not config.key_fields:
        raise _unsupported("no key columns", "Nothing would tell one row from another.")
    if config.key_generator not in (*PLAIN_GENERATORS, *COMPLEX_GENERATORS):
        why = "Hudi writes them with simple, complex and non-partitioned keys only."
        raise _unsupported(f"key generator {config.key_generator}", why)
    if captures_changes(config.properties):
        raise _unsupported("change data capture", "Commit times of rows say what has changed.")


def refuse_key_index(config: TableConfig, partition: str) -> None:
    """Refuse an index of record keys for a table that stores none."""
    if not config.has_meta_fields:
        raise InvalidRequest(
            "unsupported_virtual_keys",
            what=f"A table without meta columns cannot have the index {partition}.",
            why=f"It has {META_FIELDS_KEY}=false, and Hudi loses keys of such tables from indexes.",
            now="Leave the index out, or drop it; keys are found in the files.",
            index=partition,
        )


def _unsupported(what: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        "unsupported_virtual_keys",
        what=f"Lakewarden cannot write a table without meta columns that has {what}.",
        why=why,
        now=f"Create the table without {META_FIELDS_KEY}=false.",
    )
