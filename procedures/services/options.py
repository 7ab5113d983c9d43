"""Options of a call, and the arguments that stand for one of them."""

from collections.abc import Mapping

from lakewarden.engine.kernel.settings import Setting


def with_arguments(
    options: Mapping[str, str] | None, arguments: Mapping[Setting[object], object | None]
) -> Mapping[str, str]:
    """The options, and the arguments that are given by the keys of their settings; these win."""
    given = dict(options or {})
    for setting, value in arguments.items():
        if value is not None:
            # The same under another name would be found first or not, as chance has it.
            given = {key: text for key, text in given.items() if key not in setting.names}
            given[setting.key] = str(value)
    return given
