"""The page of all settings, `docs/settings.md`: made from their declarations, so that it is true.

`python -m lakewarden.settings_page > docs/settings.md` renews it.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from lakewarden.engine.kernel.settings import Setting
from lakewarden.engine.services.options import SECTIONS, foreign_settings

HEAD = """\
# Settings

Every write takes these, as `options={"<key>": value}` or as a keyword that is the end of a key with
underscores for its dots: `small_file_limit=0` means `hoodie.parquet.small.file.limit`. So do the
services, where a keyword means one of their own settings first. What
`Table.create(properties=...)` is given stays with the table and holds for all writers that read it.
A variable of the environment holds for all tables of a process: `HOODIE_PARQUET_SMALL_FILE_LIMIT=0`
is `hoodie.parquet.small.file.limit`. An argument wins over the session, that over the table's
properties, these over the environment, that over the default; `CALL show_config` tells which it
was. Other names are refused with the nearest known one, but for those of a session and the
environment, which may be meant for others.

All other settings of Hudi are known as well: the last sections say which of them have no effect
here, and why; a process names each once. A value that would change rows or files is refused.

This page is made by `python -m lakewarden.settings_page`."""


def page() -> str:
    """The whole page."""
    sections = (line for section in SECTIONS.items() for line in _section(*section))
    return "\n".join([HEAD, *sections, *_of_hudi()]) + "\n"


def _of_hudi() -> Iterator[str]:
    """Settings that Lakewarden has none of its own for."""
    found = foreign_settings().values()
    yield from ("", "## Settings of Hudi that are limited", "")
    yield from ("| key | values | why |", "| --- | --- | --- |")
    for one in (one for one in found if one.is_limited):
        values = ", ".join(f"`{value}`" for value in one.values)
        yield f"| `{one.key}` | {values or 'none'} | {one.why} |"
    yield from ("", "## Settings of Hudi without effect", "")
    ignored = sorted((one for one in found if not one.is_limited), key=lambda one: one.why)
    for why, group in groupby(ignored, lambda one: one.why):
        yield from (f"### {why.rstrip('.')}", "", *(f"* `{one.key}`" for one in group), "")


def _section(title: str, settings: Sequence[Setting[object]]) -> Iterator[str]:
    yield from ("", f"## {title}", "", "| key | default | meaning |", "| --- | --- | --- |")
    for setting in settings:
        also = "".join(f"; also `{alias}`" for alias in setting.aliases)
        also += f"; as a keyword also `{setting.short}`" if setting.short else ""
        yield f"| `{setting.key}`{also} | {_default(setting.default)} | {setting.description} |"


def _default(value: object) -> str:
    if value is None or value in ("", ()):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    print(page(), end="")
