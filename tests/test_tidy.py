"""The checkout keeps its own rules, and each rule is able to say no."""

import textwrap
from pathlib import Path, PurePosixPath

import pytest

from tests import tidy
from tests.tidy import PYTHON_RULES, RULES, Page, Rule, commands_without_target, pages_of

CHECKOUT = Path(__file__).parents[1]

LONG_FUNCTION = "def long():\n" + "    pass\n" * tidy.FUNCTION_LINES_MAX
# Put together from pieces, so that this page passes the rules that it tests.
SLASH = "/"

BAD: list[tuple[Rule, str, str]] = [
    (tidy.engine_uses_ports, "engine/file_groups/slices.py", "import time"),
    (tidy.engine_uses_ports, "engine/file_groups/slices.py", "import os.path"),
    (tidy.engine_uses_ports, "engine/file_groups/slices.py", "from os import environ"),
    (tidy.engine_uses_ports, "engine/file_groups/slices.py", "from uuid import uuid4"),
    (tidy.engine_uses_ports, "engine/table_door.py", "import random"),
    (tidy.engine_uses_ports, "engine/read/merge/merge.py", "import threading"),
    (tidy.engine_uses_ports, "engine/run/tasks.py", "import pyspark.sql"),
    (tidy.engine_uses_ports, "engine/formats/a.py", "import fsspec"),
    (tidy.engine_uses_ports, "engine/read/merge/merge.py", "datetime.now(UTC)"),
    (tidy.engine_uses_ports, "engine/read/merge/merge.py", "datetime.date.today()"),
    (tidy.imports_are_absolute, "engine/file_groups/slices.py", "from . import listing"),
    (tidy.imports_are_absolute, "engine/file_groups/slices.py", "from engine.kernel import clock"),
    (tidy.imports_are_absolute, "tests/test_a.py", "import procedures.compact"),
    (tidy.imports_stand_at_the_top, "engine/a.py", "def f():\n    import json"),
    (tidy.imports_stand_at_the_top, "tests/a.py", "async def f():\n    from a import b"),
    (tidy.modules_say_what_they_are_for, "engine/a.py", "A = 1"),
    (tidy.packages_hold_no_logic, "engine/file_groups/__init__.py", "def f(): ..."),
    (tidy.excepts_name_what_they_catch, "engine/a.py", "try:\n    f()\nexcept:\n    g()"),
    (tidy.modules_are_short, "engine/a.py", "\n" * (tidy.MODULE_LINES_MAX + 1)),
    (tidy.modules_are_short, "lakewarden/a.py", "\n" * (tidy.MODULE_LINES_MAX + 1)),
    (tidy.modules_are_short, "tests/a.py", "\n" * (tidy.TEST_LINES_MAX + 1)),
    (tidy.functions_are_short, "engine/a.py", LONG_FUNCTION),
    (tidy.flags_are_named, "engine/a.py", "def f(dry_run: bool): ..."),
    (tidy.public_signatures_are_typed, "engine/a.py", "def f(a: list[Any]): ..."),
    (tidy.public_signatures_are_typed, "lakewarden/a.py", "def f(*, a: int) -> Any: ..."),
    (tidy.tests_have_no_excuses, "tests/a.py", "@pytest.mark.skip\ndef test(): ..."),
    (tidy.tests_have_no_excuses, "tests/a.py", "@pytest.mark.xfail()\ndef test(): ..."),
    (tidy.tests_have_no_excuses, "tests/a.py", "os = pytest.importorskip('os')"),
    (tidy.names_are_nouns_of_the_trade, "engine/utils.py", ""),
    (tidy.names_are_nouns_of_the_trade, "tests/engine/test_helpers.py", ""),
    (tidy.names_are_nouns_of_the_trade, "engine/common/slices.py", ""),
    (tidy.nothing_is_put_off, "engine/a.py", "# TO" + "DO: think"),
    (tidy.nothing_is_put_off, "docs/a.md", "FIX" + "ME"),
    (tidy.no_machine_is_named, "Makefile", f"cp {SLASH}root/jar ."),
    (tidy.no_machine_is_named, "docs/a.md", f"`{SLASH}home/jo/tables`"),
    (tidy.no_machine_is_named, "requirements/dev.lock", "--index-url pypi" + ".org"),
    (tidy.no_machine_is_named, "docs/a.md", "read .." + "/shared/design"),
]

GOOD: list[tuple[Rule, str, str]] = [
    (tidy.engine_uses_ports, "engine/kernel/clock.py", "import time\ndatetime.now(UTC)"),
    (tidy.engine_uses_ports, "engine/spark/scan/frames.py", "import pyspark.sql"),
    (tidy.engine_uses_ports, "lakewarden/session.py", "import os\nimport pyspark"),
    (tidy.engine_uses_ports, "engine/file_groups/slices.py", "from datetime import timedelta"),
    (tidy.imports_are_absolute, "engine/a.py", "from lakewarden.engine.kernel import clock"),
    (tidy.modules_say_what_they_are_for, "engine/__init__.py", ""),
    (tidy.packages_hold_no_logic, "engine/__init__.py", '"""A."""\nimport a\n__all__ = ["a"]'),
    (tidy.modules_are_short, "tests/a.py", "\n" * (tidy.MODULE_LINES_MAX + 1)),
    (tidy.functions_are_short, "engine/a.py", LONG_FUNCTION.removesuffix("    pass\n")),
    (tidy.flags_are_named, "engine/a.py", "def f(*, dry_run: bool): ..."),
    (tidy.public_signatures_are_typed, "engine/a.py", "def _f(a: Any): ..."),
    (tidy.no_machine_is_named, "Makefile", f"bench{SLASH}.work{SLASH}"),
]


def page(path: str, text: str) -> Page:
    return Page(PurePosixPath(path), textwrap.dedent(text))


@pytest.fixture(scope="module")
def pages() -> tuple[Page, ...]:
    """The pages of the checkout, read and parsed once."""
    return pages_of(CHECKOUT)


@pytest.mark.xdist_group("tidy")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_checkout_keeps(rule: Rule, pages: tuple[Page, ...]) -> None:
    if rule in PYTHON_RULES:
        pages = tuple(page for page in pages if page.is_python)
    findings = [f"{page.path}: {finding}" for page in pages for finding in rule(page)]
    assert not findings, "\n".join(["", *findings])


def short_name(value: object) -> str:
    """The same name in every process: an address would keep workers from sharing the tests."""
    return getattr(value, "__name__", str(value))[:40]


@pytest.mark.parametrize(("rule", "path", "text"), BAD, ids=short_name)
def test_a_rule_sees(rule: Rule, path: str, text: str) -> None:
    assert list(rule(page(path, text)))


@pytest.mark.parametrize(("rule", "path", "text"), GOOD, ids=short_name)
def test_a_rule_allows(rule: Rule, path: str, text: str) -> None:
    assert not list(rule(page(path, text)))


def test_every_rule_is_shown_to_be_able_to_fail() -> None:
    assert {rule for rule, _, _ in BAD} == set(RULES)


def test_the_pages_show_only_commands_that_make_knows() -> None:
    prose = tuple(page for page in pages_of(CHECKOUT) if page.path.suffix == ".md")
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    assert not list(commands_without_target(prose, makefile))


def test_a_command_that_make_does_not_know_is_seen() -> None:
    prose = (page("README.md", "Run\n\n    make fly\n\nor `make swim`; make sure of it.\n"),)
    found = list(commands_without_target(prose, "help: ## Show this list\nswim:\n"))
    assert found == ["README.md: make fly is not a target"]


def test_links_and_golden_archives_are_no_pages() -> None:
    paths = [page.path for page in pages_of(CHECKOUT)]
    assert PurePosixPath("engine/kernel/errors.py") in paths
    assert PurePosixPath("lakewarden/engine/kernel/errors.py") not in paths
    assert not [path for path in paths if path.suffix in {".zip", ".json"}]
