"""Effective settings: what every setting is worth here, and who has said so."""

from collections.abc import Iterator
from dataclasses import dataclass

from lakewarden.engine.detection.strategies import CHECKS, DERIVED
from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import Origin, Setting, Settings
from lakewarden.engine.services.options import ALL_SETTINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSetting:
    """A setting with its value as text; `fault` says what is wrong with one that can't be used."""

    setting: Setting[object]
    value: str | None
    origin: Origin
    fault: str | None = None


def effective_settings(settings: Settings, wanted: str | None = None) -> Iterator[EffectiveSetting]:
    """All settings in their order; only one of a name, or those that have it in theirs."""
    names = (wanted or "").strip().lower()
    exact = [one for one in ALL_SETTINGS if names in map(str.lower, one.names)]
    for setting in exact or ALL_SETTINGS:
        if any(names in name.lower() for name in setting.names):
            yield _effective(setting, settings)


def setting_text(value: object) -> str | None:
    """A value as it is written; None where there is none."""
    if value is None:
        return None
    if isinstance(value, tuple | list | frozenset):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _effective(setting: Setting[object], settings: Settings) -> EffectiveSetting:
    try:
        found = settings.resolve(setting)
        if setting.key in CHECKS:
            CHECKS[setting.key](settings)
    except InvalidRequest as error:
        origin, raw = _given(setting, settings)
        return EffectiveSetting(setting=setting, value=raw, origin=origin, fault=error.why)
    value = DERIVED[setting.key](settings) if setting.key in DERIVED else found.value
    return EffectiveSetting(setting=setting, value=setting_text(value), origin=found.origin)


def _given(setting: Setting[object], settings: Settings) -> tuple[Origin, str]:
    return next(
        (origin, values[name])
        for origin, values in settings.layers
        for name in setting.names
        if name in values
    )
