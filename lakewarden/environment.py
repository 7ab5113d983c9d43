"""The environment of this process: any setting, under its key in capitals with `_` for each dot.

So `HOODIE_PARQUET_SMALL_FILE_LIMIT` is `hoodie.parquet.small.file.limit`, for all tables that have
nothing else to say of it.
"""

import os
from collections.abc import Mapping

from lakewarden.engine.services.options import ALL_SETTINGS


def environment_settings() -> dict[str, str]:
    """What the environment sets now; a variable that is empty sets nothing."""
    return {_NAMES[name]: text for name, text in os.environ.items() if text and name in _NAMES}


def variable(key: str) -> str:
    """The variable for a key."""
    return key.upper().replace(".", "_")


_NAMES: Mapping[str, str] = {
    variable(name): name for setting in ALL_SETTINGS for name in setting.names
}
