"""Storage options among other settings: how to get to the storage of a table, by their prefix."""

from collections.abc import Mapping

PREFIX = "lakewarden.storage."


def storage_options(settings: Mapping[str, str]) -> dict[str, object]:
    """Those of some settings that are for the storage, by the names it knows."""
    return {
        key.removeprefix(PREFIX): value for key, value in settings.items() if is_for_storage(key)
    }


def is_for_storage(key: str) -> bool:
    """Whether a setting is for the storage."""
    return key.startswith(PREFIX)
