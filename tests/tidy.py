"""The rules of CONTRIBUTING.md that a machine can check: each turns one file into findings.

A rule sees a file as a `Page`: where it stands, its text, and for Python its syntax tree. It yields
a sentence for each finding; `test_tidy.py` runs every rule on every file of the checkout.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

MODULE_LINES_MAX = 450
TEST_LINES_MAX = 500
FUNCTION_LINES_MAX = 60

# What only some folders of the engine may import. Time, chance and the machine come through ports,
# so that a failure can be replayed from one printed line.
PORT_FOLDERS = frozenset({"kernel", "storage", "run", "spark", "testing"})
RESTRICTED_IMPORTS = {
    "fsspec": frozenset({"storage"}),
    "os": PORT_FOLDERS,
    "pyspark": frozenset({"spark"}),
    "random": PORT_FOLDERS,
    "threading": PORT_FOLDERS,
    "time": PORT_FOLDERS,
    "uuid": PORT_FOLDERS,
}
CLOCK_READINGS = frozenset({"now", "utcnow", "today"})
LINKED_FOLDERS = frozenset({"engine", "procedures", "sql_ext"})
EMPTY_NAMES = frozenset(
    "util utils helper helpers common misc data info manager process handle".split()
)
EXCUSES = frozenset({"skip", "skipif", "xfail", "importorskip"})

MACHINE_PATH = re.compile(r"(?<![\w.])/(root|work|home/[a-z]+|Users/[A-Za-z]+)/")
REGISTRY_HOST = re.compile(
    r"pypi\.org|pythonhosted\.|repo1?\.maven|maven\.org|registry\.npmjs|(deb|security)\.debian"
)
NEIGHBOUR = re.compile(r"\.\./shared\b")
PUT_OFF = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MAKE_COMMAND = re.compile(r"(?:^(?: {4}|\t)|^|`)make ([a-z-]+)", re.MULTILINE)
MAKE_TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Page:
    """One file of the checkout, addressed from its top."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @property
    def functions(self) -> Iterator[Function]:
        return (node for node in self.nodes if isinstance(node, Function))

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py"

    def is_in(self, folder: str) -> bool:
        return self.path.parts[0] == folder


Rule = Callable[[Page], Iterator[str]]


def engine_uses_ports(page: Page) -> Iterator[str]:
    """Inside the engine, only the folders that are ports import what ports stand for."""
    if not page.is_in("engine"):
        return
    folder = page.path.parts[1]
    for name, line in _imported_modules(page):
        allowed = RESTRICTED_IMPORTS.get(name.split(".")[0])
        if allowed is not None and folder not in allowed:
            yield f"line {line}: imports {name}, which only {_names(allowed)} may"
    if folder in PORT_FOLDERS:
        return
    for node in page.nodes:
        if isinstance(node, ast.Attribute) and node.attr in CLOCK_READINGS:
            yield f"line {node.lineno}: reads the clock by .{node.attr}; ask the clock port"


def imports_are_absolute(page: Page) -> Iterator[str]:
    """Imports name the module from the top, and by the name that users import."""
    for node in page.nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            yield f"line {node.lineno}: relative import"
    for name, line in _imported_modules(page):
        if name.split(".")[0] in LINKED_FOLDERS:
            yield f"line {line}: imports {name}; its import name is lakewarden.{name}"


def imports_stand_at_the_top(page: Page) -> Iterator[str]:
    """No import hides inside a function."""
    for function in page.functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield f"line {node.lineno}: import inside {function.name}"


def modules_say_what_they_are_for(page: Page) -> Iterator[str]:
    """Every module that is not empty starts with a sentence."""
    if page.tree.body and not ast.get_docstring(page.tree):
        yield "no docstring at its head"


def packages_hold_no_logic(page: Page) -> Iterator[str]:
    """An `__init__.py` passes names on and does nothing else."""
    if page.path.name != "__init__.py":
        return
    for node in page.tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not isinstance(node, ast.Import | ast.ImportFrom | ast.Assign):
            yield f"line {node.lineno}: logic in an __init__.py"


def excepts_name_what_they_catch(page: Page) -> Iterator[str]:
    """No bare `except`."""
    for node in page.nodes:
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield f"line {node.lineno}: bare except"


def modules_are_short(page: Page) -> Iterator[str]:
    """Nobody scrolls for minutes."""
    lines = len(page.text.splitlines())
    is_product = page.path.parts[0] in {"lakewarden", *LINKED_FOLDERS}
    limit = MODULE_LINES_MAX if is_product else TEST_LINES_MAX
    if lines > limit:
        yield f"{lines} lines; the limit is {limit}"


def functions_are_short(page: Page) -> Iterator[str]:
    """A function fits on a screen."""
    for function in page.functions:
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield f"line {function.lineno}: {function.name} has {lines} lines"


def flags_are_named(page: Page) -> Iterator[str]:
    """A boolean parameter is keyword-only, so that a call says what it means."""
    if page.is_in("tests"):
        return
    for function in page.functions:
        for argument in (*function.args.posonlyargs, *function.args.args):
            if argument.annotation is not None and ast.unparse(argument.annotation) == "bool":
                yield f"line {function.lineno}: flag {argument.arg} of {function.name} by position"


def public_signatures_are_typed(page: Page) -> Iterator[str]:
    """`Any` does not stand in a public signature."""
    if page.is_in("tests") or page.is_in("bench"):
        return
    for function in page.functions:
        if function.name.startswith("_"):
            continue
        signature = [argument.annotation for argument in _arguments(function)]
        for annotation in filter(None, (*signature, function.returns)):
            if any(
                isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(annotation)
            ):
                yield f"line {function.lineno}: Any in the signature of {function.name}"


def tests_have_no_excuses(page: Page) -> Iterator[str]:
    """No test is skipped or expected to fail."""
    if not page.is_in("tests"):
        return
    for node in page.nodes:
        if (
            isinstance(node, ast.Attribute)
            and node.attr in EXCUSES
            and ast.unparse(node.value) in {"pytest", "pytest.mark", "unittest"}
        ):
            yield f"line {node.lineno}: pytest's {node.attr}"


def names_are_nouns_of_the_trade(page: Page) -> Iterator[str]:
    """No module or folder is named after nothing."""
    for part in (*page.path.parts[:-1], page.path.stem):
        if part.removeprefix("test_") in EMPTY_NAMES:
            yield f"{part!r} says nothing; find the noun"


def nothing_is_put_off(page: Page) -> Iterator[str]:
    """Work to be done is an issue, not a comment."""
    yield from _matches(PUT_OFF, page, "work put off")


def no_machine_is_named(page: Page) -> Iterator[str]:
    """The checkout works anywhere: no path of one machine, no registry, no neighbouring folder."""
    yield from _matches(MACHINE_PATH, page, "path of one machine")
    yield from _matches(REGISTRY_HOST, page, "registry host")
    yield from _matches(NEIGHBOUR, page, "folder outside the checkout")


PYTHON_RULES: tuple[Rule, ...] = (
    engine_uses_ports,
    imports_are_absolute,
    imports_stand_at_the_top,
    modules_say_what_they_are_for,
    packages_hold_no_logic,
    excepts_name_what_they_catch,
    modules_are_short,
    functions_are_short,
    flags_are_named,
    public_signatures_are_typed,
    tests_have_no_excuses,
    names_are_nouns_of_the_trade,
)
TEXT_RULES: tuple[Rule, ...] = (nothing_is_put_off, no_machine_is_named)
RULES = PYTHON_RULES + TEXT_RULES


def commands_without_target(pages: tuple[Page, ...], makefile: str) -> Iterator[str]:
    """Every `make` command that a page of prose shows is a target of the Makefile."""
    targets = set(MAKE_TARGET.findall(makefile))
    for page in pages:
        for command in MAKE_COMMAND.findall(page.text):
            if command not in targets:
                yield f"{page.path}: make {command} is not a target"


FOLDERS = (
    ".ci bench docs engine lakewarden procedures requirements scripts sql_examples sql_ext tests"
).split()
SUFFIXES = frozenset(".avsc .cfg .java .lock .md .py .scala .sh .sql .toml .xml .yaml .yml".split())
NAMES_WITHOUT_SUFFIX = frozenset({"Makefile", "run", ".gitignore"})


def pages_of(checkout: Path) -> tuple[Page, ...]:
    """All text files of a checkout that people write; links are not followed."""
    files = [path for path in checkout.iterdir() if path.is_file()]
    for folder in FOLDERS:
        files += _files_below(checkout / folder)
    return tuple(
        Page(PurePosixPath(path.relative_to(checkout).as_posix()), path.read_text(encoding="utf-8"))
        for path in sorted(files)
        if path.suffix in SUFFIXES or path.name in NAMES_WITHOUT_SUFFIX
    )


def _files_below(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_symlink() or path.name == "__pycache__" or path.name == ".work":
            continue
        if path.is_dir():
            yield from _files_below(path)
        else:
            yield path


def _imported_modules(page: Page) -> Iterator[tuple[str, int]]:
    for node in page.nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno


def _arguments(function: Function) -> Iterator[ast.arg]:
    arguments = function.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from filter(None, (arguments.vararg, arguments.kwarg))


def _matches(pattern: re.Pattern[str], page: Page, meaning: str) -> Iterator[str]:
    for match in pattern.finditer(page.text):
        line = page.text.count("\n", 0, match.start()) + 1
        yield f"line {line}: {meaning}: {match[0]}"


def _names(folders: frozenset[str]) -> str:
    return ", ".join(sorted(folders))
