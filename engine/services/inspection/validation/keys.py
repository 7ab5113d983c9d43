"""Is each key there once?"""

from collections.abc import Iterator

from lakewarden.engine.index.key_copies import key_copies
from lakewarden.engine.index.key_file import key_columns
from lakewarden.engine.index.repeated_keys import KeySearch, RepeatedKeys
from lakewarden.engine.index.settings import has_global_index
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Settings
from lakewarden.engine.services.inspection.validation.finding import (
    CheckedTable,
    Finding,
    failed,
    ok,
    skipped,
)
from lakewarden.engine.table.config import kept_settings

# So many keys are named; of the others it is said how many they are.
NAMED_MAX = 100


def check_keys(scene: CheckedTable) -> Iterator[Finding]:
    """Every key is there once: in its partition, or in the table if its index is over all."""
    state = scene.state
    if not key_columns(state.config).names:
        yield skipped("The table has no record keys.")
        return
    try:
        settings = Settings.of(table=kept_settings(state.config.properties))
        is_global = has_global_index(state, settings)
    except InvalidRequest as error:
        yield skipped(str(error))
        return
    named = left = 0
    for repeated in KeySearch(state, scene.executor, is_global).repeated():
        some = RepeatedKeys(repeated.keys.slice(0, max(NAMED_MAX - named, 0)), repeated.slices)
        named += len(some.keys)
        left += len(repeated.keys) - len(some.keys)
        yield from _reported(scene, some)
    if left:
        yield failed(f"{left} more keys repeat; repair_deduplicate lists all.", about="")
    if not named:
        yield ok("Every key appears once.")


def _reported(scene: CheckedTable, repeated: RepeatedKeys) -> Iterator[Finding]:
    if not len(repeated.keys):
        return
    copies = key_copies(scene.state, repeated, (), scene.executor)
    places: dict[str, list[tuple[str, str]]] = {}
    keys = repeated.keys.to_pylist()
    for key, at in zip(copies.key_at.tolist(), copies.slice_at.tolist(), strict=True):
        slice_ = copies.slices[at]
        places.setdefault(keys[key], []).append((slice_.partition, slice_.file_id))
    for key, homes in places.items():
        names = ", ".join(f"{partition}/{file_id}".lstrip("/") for partition, file_id in homes[:5])
        detail = f"It appears {len(homes)} times: {names}. repair_deduplicate keeps the newest."
        yield failed(detail, about=key, partition=homes[-1][0])
