"""Examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import lakewarden

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(lakewarden.__path__, "lakewarden.")
    if not module.name.endswith(".__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_modules_behind_the_links_are_found() -> None:
    assert "lakewarden.engine.kernel.errors" in MODULES
