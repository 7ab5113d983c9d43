"""Options: every setting that a write knows, and how a caller gives them."""

from collections.abc import Mapping

from lakewarden.engine.index.settings import INDEX_SETTINGS
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Setting, by_keyword, refuse_unknown
from lakewarden.engine.locks.settings import LOCK_SETTINGS
from lakewarden.engine.plans.settings import PLAN_SETTINGS
from lakewarden.engine.write.far_rows import FAR_SETTINGS
from lakewarden.engine.write.metadata_table import METADATA_SETTINGS
from lakewarden.engine.write.settings import WRITE_SETTINGS
from lakewarden.engine.write.sizes import SIZE_SETTINGS

ALL_SETTINGS: tuple[Setting[object], ...] = (
    *WRITE_SETTINGS,
    *SIZE_SETTINGS,
    *FAR_SETTINGS,
    *INDEX_SETTINGS,
    *METADATA_SETTINGS,
    *PLAN_SETTINGS,
    *LOCK_SETTINGS,
)


def given_options(
    options: Mapping[str, object] | None, keywords: Mapping[str, object]
) -> dict[str, object]:
    """What a caller sets by key or by keyword; what means nothing is refused by name."""
    given = dict(options or {})
    refuse_unknown(given, ALL_SETTINGS)
    named = by_keyword(keywords, ALL_SETTINGS)
    twice = sorted(set(given) & set(named))
    if twice:
        raise InvalidRequest(
            "repeated_option",
            what=f"{twice[0]} is given as an option and as a keyword.",
            why="It can have one value.",
            now="Leave one of them out.",
            option=twice[0],
        )
    return given | named
