"""The rules of the whole checkout: what they find is listed, and the list only shrinks."""

import textwrap
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest

from tests import tidy_checkout
from tests.tidy import Page, pages_of
from tests.tidy_checkout import CHECKOUT_RULES, CheckoutRule, known_offences, offence_list

CHECKOUT = Path(__file__).parents[1]
LISTED = Path(__file__).parent / "tidy_offenders.toml"

LAYERS = '[[tool.importlinter.contracts]]\nlayers = ["lakewarden.cli", "lakewarden.table"]\n'
LONG_LINE = "word " * 21
ACTING = "def removed(storage):\n    storage.delete('a')\n"
RETIRED = "who" + "ever"

# A rule, the files that break it, and where it says so.
BAD: list[tuple[CheckoutRule, dict[str, str], str]] = [
    (tidy_checkout.markdown_has_short_lines, {"docs/a.md": LONG_LINE}, "docs/a.md"),
    (tidy_checkout.words_are_the_trades, {"engine/a.py": "class Wish: ..."}, "engine/a.py"),
    (tidy_checkout.words_are_the_trades, {"engine/a.py": "def _look(): ..."}, "engine/a.py"),
    (tidy_checkout.words_are_the_trades, {"engine/evidence/a.py": ""}, "engine/evidence/a.py"),
    (
        tidy_checkout.words_are_the_trades,
        {"engine/a.py": f'A = "It goes to {RETIRED} asks."'},
        "engine/a.py",
    ),
    (tidy_checkout.words_are_the_trades, {"engine/a.py": f"# For {RETIRED} asks."}, "engine/a.py"),
    (tidy_checkout.words_are_the_trades, {"docs/a.md": f"For {RETIRED}\nasks."}, "docs/a.md"),
    (
        tidy_checkout.public_classes_have_names_of_their_own,
        {"engine/a.py": "class A: ...", "procedures/b.py": "class A: ..."},
        "procedures/b.py",
    ),
    (
        tidy_checkout.late_imports_have_one_home,
        {"lakewarden/a.py": "import_module('lakewarden.sql_ext.door')"},
        "lakewarden/a.py",
    ),
    (
        tidy_checkout.late_imports_have_one_home,
        {"lakewarden/a.py": "importlib.import_module(name)"},
        "lakewarden/a.py",
    ),
    (
        tidy_checkout.modules_have_a_layer,
        {"pyproject.toml": LAYERS, "lakewarden/a.py": "", "lakewarden/table.py": ""},
        "lakewarden/a.py",
    ),
    (
        tidy_checkout.services_stand_alone,
        {
            "engine/services/clean/a.py": "from lakewarden.engine.services.archive.b import c",
            "engine/services/archive/b.py": "",
        },
        "engine/services/clean/a.py",
    ),
    (tidy_checkout.participles_change_nothing, {"engine/a.py": ACTING}, "engine/a.py"),
    (
        tidy_checkout.participles_change_nothing,
        {
            "engine/a.py": ACTING.replace("removed", "remove"),
            "engine/b.py": "from lakewarden.engine.a import remove\ndef _gone(a):\n    remove(a)\n",
        },
        "engine/b.py",
    ),
    (
        tidy_checkout.folders_form_no_cycles,
        {
            "engine/a/one.py": "from lakewarden.engine.b.two import x",
            "engine/b/two.py": "",
            "engine/b/three.py": "from lakewarden.engine.c import four",
            "engine/c/four.py": "import lakewarden.engine.a.five",
            "engine/a/five.py": "",
        },
        "engine/b",
    ),
    (
        tidy_checkout.folders_form_no_cycles,
        {
            "engine/one.py": "from lakewarden.engine.two import x",
            "engine/two.py": "if TYPE_CHECKING:\n    from lakewarden.engine.one import y",
        },
        "engine/two.py",
    ),
    (
        tidy_checkout.tests_import_no_tests,
        {"tests/test_a.py": "from tests.test_b import World"},
        "tests/test_a.py",
    ),
]

GOOD: list[tuple[CheckoutRule, dict[str, str]]] = [
    (tidy_checkout.markdown_has_short_lines, {"docs/a.md": f"| {LONG_LINE} |"}),
    (tidy_checkout.markdown_has_short_lines, {"docs/a.md": f"```\n{LONG_LINE}\n```"}),
    (tidy_checkout.markdown_has_short_lines, {"docs/a.md": f"Run\n\n    {LONG_LINE}"}),
    (tidy_checkout.words_are_the_trades, {"engine/a.py": f"{RETIRED} = 1"}),
    (tidy_checkout.words_are_the_trades, {"docs/decisions/0001-a.md": RETIRED}),
    (tidy_checkout.public_classes_have_names_of_their_own, {"engine/a.py": "class A: ..."}),
    (
        tidy_checkout.late_imports_have_one_home,
        {tidy_checkout.LATE_IMPORTS: "import_module('lakewarden.sql_ext.door')"},
    ),
    (tidy_checkout.late_imports_have_one_home, {"lakewarden/a.py": "import_module('pyspark')"}),
    (
        tidy_checkout.services_stand_alone,
        {
            "engine/services/clean/a.py": "from lakewarden.engine.services.planning.b import c",
            "engine/services/planning/b.py": "",
        },
    ),
    (tidy_checkout.participles_change_nothing, {"engine/a.py": ACTING.replace("removed", "drop")}),
    (tidy_checkout.participles_change_nothing, {"engine/a.py": "def removed(a):\n    a.pop()"}),
    (
        tidy_checkout.folders_form_no_cycles,
        {
            "lakewarden/__main__.py": "from lakewarden.cli import main",
            "lakewarden/cli/__init__.py": "from lakewarden.cli.entry import main",
            "lakewarden/cli/entry.py": "from lakewarden.table import Table",
            "lakewarden/table.py": "from lakewarden.engine import formats",
            "engine/formats/__init__.py": "",
        },
    ),
    (tidy_checkout.tests_import_no_tests, {"tests/test_a.py": "from tests.kit import World"}),
]


def pages_with(files: dict[str, str]) -> list[Page]:
    return [Page(PurePosixPath(path), textwrap.dedent(text)) for path, text in files.items()]


def short_name(value: object) -> str:
    return getattr(value, "__name__", str(value))[:40]


@pytest.fixture(scope="module")
def pages() -> Sequence[Page]:
    """The pages of the checkout, read and parsed once."""
    return pages_of(CHECKOUT)


@pytest.mark.xdist_group("tidy")
@pytest.mark.parametrize("rule", CHECKOUT_RULES, ids=short_name)
def test_the_checkout_keeps_a_rule_but_for_what_is_listed(
    rule: CheckoutRule, pages: Sequence[Page]
) -> None:
    known = known_offences(LISTED.read_text(encoding="utf-8")).get(rule.__name__, frozenset())
    found = set(rule(pages))
    assert sorted(found - known) == [], "new: mend these"
    assert sorted(known - found) == [], "mended: take these off the list"


@pytest.mark.parametrize(("rule", "files", "place"), BAD, ids=short_name)
def test_a_rule_sees(rule: CheckoutRule, files: dict[str, str], place: str) -> None:
    assert place in {path for path, _ in rule(pages_with(files))}


@pytest.mark.parametrize(("rule", "files"), GOOD, ids=short_name)
def test_a_rule_allows(rule: CheckoutRule, files: dict[str, str]) -> None:
    assert not list(rule(pages_with(files)))


def test_every_rule_is_shown_to_be_able_to_fail() -> None:
    assert {rule for rule, _, _ in BAD} == set(CHECKOUT_RULES)


def test_a_list_of_offences_reads_as_it_was_written() -> None:
    offences = {"one": [("a.py", "x"), ("a.py", "y")], "other": []}
    assert known_offences(offence_list(offences)) == {"one": frozenset(offences["one"])}
