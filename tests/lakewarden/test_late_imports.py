"""Late imports: what they name is there, and `import lakewarden` loads none of it."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module

import pytest

from lakewarden import late_imports


def named() -> list[tuple[str, str]]:
    """The modules that are imported by name, each with what is taken from it."""
    tree = ast.parse(inspect.getsource(late_imports))
    return [
        (ast.literal_eval(node.value.args[0]), node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call)
    ]


@pytest.mark.parametrize(("module", "attribute"), named())
def test_what_is_imported_late_is_there(module: str, attribute: str) -> None:
    assert callable(getattr(import_module(module), attribute))


def test_the_import_of_lakewarden_loads_nothing_of_it() -> None:
    modules = sorted({module for module, _ in named()})
    program = f"import sys, lakewarden; print([one for one in {modules} if one in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "[]\n", found.stderr
