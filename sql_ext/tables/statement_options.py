"""Statement options: what a statement says of its write, and what its session says."""

from collections.abc import Mapping

from lakewarden.engine.services.options import ALL_SETTINGS, check_values, understood
from lakewarden.storage_options import is_for_storage


def session_settings(details: Mapping[str, object]) -> dict[str, str]:
    """What the session sets for all of its tables; some of it may be for something else.

    What would change rows or files is refused nevertheless.
    """
    settings = _texts(details.get("settings"))
    check_values(settings)
    return settings


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
