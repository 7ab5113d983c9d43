"""The page of settings says what their declarations say."""

from pathlib import Path

from lakewarden.engine.services.options import ALL_SETTINGS
from lakewarden.settings_page import page

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_is_what_the_declarations_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_no_key_is_declared_twice() -> None:
    names = [name for setting in ALL_SETTINGS for name in setting.names]
    assert len(set(names)) == len(names)


def test_every_setting_is_described() -> None:
    assert all(setting.description for setting in ALL_SETTINGS)
