"""The rules of CONTRIBUTING.md that look at more than one file, and the list of offences.

A rule turns the pages of the checkout into offences: where, and what. Offences have no line
numbers, so that `tidy_offenders.toml` can list those of today. That list may only shrink.
"""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import pairwise
from pathlib import Path, PurePosixPath

from tests.tidy import Function, Page, pages_of

COLUMNS_MAX = 100
PRODUCT = ("engine", "lakewarden", "procedures", "sql_ext")
LATE_IMPORTS = "lakewarden/late_imports.py"
SERVICES = PurePosixPath("engine/services")
# Folders of the services that are there for all of them.
FOR_ALL_SERVICES = frozenset({"planning", "execution", "retention"})
# They look at everything, and nothing imports them.
PROGRAMS = frozenset({"lakewarden/__main__.py", "lakewarden/demo.py"})
# What changes a storage, as the port calls it.
ACTS = frozenset("put touch create create_exclusive replace_if delete delete_folder".split())
IRREGULAR_PARTICIPLES = frozenset(
    "begun bound brought built chosen done drawn driven fallen felt forgotten found given gone"
    " heard held hidden kept known laid left lost made met put read said seen sent set shown shut"
    " taken thought told torn understood woken won written".split()
)
# Also nouns and verbs, or names of states.
NO_PARTICIPLES = frozenset(
    "put read set need feed seed speed bed embed exceed proceed succeed shed".split()
)

WORDS = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))

Offence = tuple[str, str]
CheckoutRule = Callable[[Sequence[Page]], Iterator[Offence]]


def markdown_has_short_lines(pages: Sequence[Page]) -> Iterator[Offence]:
    """Lines of Markdown have at most 100 columns; tables and code aside."""
    for page in pages:
        if page.path.suffix != ".md":
            continue
        long = sum(len(line) > COLUMNS_MAX for line in _prose_lines(page.text))
        if long:
            yield str(page.path), "has lines that are too long"


def words_are_the_trades(pages: Sequence[Page]) -> Iterator[Offence]:
    """No retired word names a class, function or module, or stands in prose."""
    for page in pages:
        if any(str(page.path).startswith(one) for one in WORDS["exempt"]["pages"]):
            continue
        words: set[str] = set()
        if page.is_python and page.path.parts[0] in PRODUCT:
            words |= {name for name in _names(page) if name.lstrip("_") in WORDS["names"]}
            words |= _retired(_texts(page))
        elif page.path.suffix == ".md":
            words |= _retired("\n".join(_prose_lines(page.text)))
        yield from ((str(page.path), word) for word in sorted(words))


def public_classes_have_names_of_their_own(pages: Sequence[Page]) -> Iterator[Offence]:
    """The name of a public class occurs once."""
    homes: dict[str, list[str]] = defaultdict(list)
    for page in _product(pages):
        for node in page.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(page.path))
    for name, paths in sorted(homes.items()):
        yield from ((path, f"class {name}") for path in paths if len(paths) > 1)


def late_imports_have_one_home(pages: Sequence[Page]) -> Iterator[Offence]:
    """One named module imports our own modules by `import_module`."""
    for page in _product(pages):
        if str(page.path) == LATE_IMPORTS:
            continue
        for node in page.nodes:
            if isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
                name = (
                    node.args[0].value if isinstance(node.args[0], ast.Constant) else "lakewarden"
                )
                if str(name).startswith("lakewarden"):
                    yield str(page.path), f"imports {name}"


def modules_have_a_layer(pages: Sequence[Page]) -> Iterator[Offence]:
    """Every module of `lakewarden/` is in a layer of pyproject.toml."""
    (settings,) = (page for page in pages if str(page.path) == "pyproject.toml")
    contracts = tomllib.loads(settings.text)["tool"]["importlinter"]["contracts"]
    layers = {
        part.strip()
        for contract in contracts
        for one in contract["layers"]
        for part in one.split("|")
    }
    for page in pages:
        if page.is_python and page.path.parts[0] == "lakewarden" and len(page.path.parts) > 1:
            module = f"lakewarden.{PurePosixPath(page.path.parts[1]).stem}"
            if page.path.stem != "__init__" and module not in layers:
                yield str(page.path), "is in no layer"


def services_stand_alone(pages: Sequence[Page]) -> Iterator[Offence]:
    """No folder of `engine/services` imports the folder of another service."""
    folders = {
        page.path.parts[2]
        for page in pages
        if page.path.is_relative_to(SERVICES) and len(page.path.parts) > 3
    } - FOR_ALL_SERVICES
    for page in pages:
        if not page.is_python or not page.path.is_relative_to(SERVICES):
            continue
        if (own := page.path.parts[2]) not in folders:
            continue
        for module in sorted({name for name, _ in _imports(page).values()}):
            parts = PurePosixPath(module).parts
            if module.startswith(f"{SERVICES}/") and parts[2] in folders - {own}:
                yield str(page.path), f"imports {'.'.join(parts[:3])}"


def participles_change_nothing(pages: Sequence[Page]) -> Iterator[Offence]:
    """A function with the name of a participle tells something; what acts has a verb."""
    product = {str(page.path): page for page in _product(pages)}
    acting = _acting(product)
    for path, name in sorted(acting):
        if _is_participle(name):
            yield path, f"{name} acts"


def folders_form_no_cycles(pages: Sequence[Page]) -> Iterator[Offence]:
    """Folders import each other in one direction only; so do modules, across folders and within."""
    product = {str(page.path): page for page in _product(pages) if str(page.path) not in PROGRAMS}
    modules: dict[str, set[str]] = defaultdict(set)
    folders: dict[str, set[str]] = defaultdict(set)
    for path, page in product.items():
        for other in _imported_pages(page, product.keys()) - {path}:
            modules[path].add(other)
            above, below = str(PurePosixPath(path).parent), str(PurePosixPath(other).parent)
            if above != below:
                folders[above].add(below)
    for graph in (modules, folders):
        for one, others in graph.items():
            cycle = sorted(other for other in others if one in _reached(graph, other))
            yield from ((one, f"is in a cycle with {other}") for other in cycle)


def tests_import_no_tests(pages: Sequence[Page]) -> Iterator[Offence]:
    """What several tests need is in a module of a kit, not in one of the tests."""
    for page in pages:
        if not page.is_python or page.path.parts[0] != "tests":
            continue
        names = {(node.module or "") for node in page.nodes if isinstance(node, ast.ImportFrom)}
        names |= {
            alias.name
            for node in page.nodes
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        for name in sorted(names):
            if name.startswith("tests.") and name.split(".")[-1].startswith("test_"):
                yield str(page.path), f"imports {name}"


CHECKOUT_RULES: tuple[CheckoutRule, ...] = (
    markdown_has_short_lines,
    words_are_the_trades,
    public_classes_have_names_of_their_own,
    late_imports_have_one_home,
    modules_have_a_layer,
    services_stand_alone,
    participles_change_nothing,
    folders_form_no_cycles,
    tests_import_no_tests,
)


def known_offences(text: str) -> Mapping[str, frozenset[Offence]]:
    """The offences that a list admits, by the names of their rules."""
    rules = tomllib.loads(text)
    return {
        rule: frozenset((path, what) for path, found in paths.items() for what in found)
        for rule, paths in rules.items()
    }


def offence_list(offences: Mapping[str, Sequence[Offence]]) -> str:
    """The text of a list of offences."""
    lines = [
        "# What the rules of tests/tidy_checkout.py find today. This list may only shrink: a test",
        "# fails for what is new, and for what is listed and gone.",
        "# `python -m tests.tidy_checkout` writes it anew.",
    ]
    for rule, found in offences.items():
        by_path: dict[str, list[str]] = defaultdict(list)
        for path, what in sorted(set(found)):
            by_path[path].append(what)
        if by_path:
            lines += ["", f"[{rule}]"]
            lines += [f'"{path}" = {_listed(what)}' for path, what in by_path.items()]
    return "\n".join(lines) + "\n"


def _listed(what: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{one}"' for one in what) + "]"


def _product(pages: Sequence[Page]) -> Iterator[Page]:
    return (page for page in pages if page.is_python and page.path.parts[0] in PRODUCT)


def _prose_lines(text: str) -> Iterator[str]:
    """The lines of Markdown that are neither in a table nor code."""
    is_code = False
    for before, line in pairwise(["", *text.splitlines()]):
        if line.lstrip().startswith("```"):
            is_code = not is_code
            continue
        is_indented = line.startswith("    ") and (not before or before.startswith("    "))
        if not is_code and not is_indented and not line.startswith("|"):
            yield line


@cache
def _pattern() -> re.Pattern[str]:
    words = sorted(WORDS["prose"], key=len, reverse=True)
    ends = (re.escape(word) + ("" if word.endswith(".") else r"\b") for word in words)
    return re.compile(rf"\b(?:{'|'.join(ends)})", re.IGNORECASE)


def _retired(text: str) -> set[str]:
    return {match.lower() for match in _pattern().findall(" ".join(text.split()))}


def _names(page: Page) -> Iterator[str]:
    yield from (*page.path.parts[1:-1], page.path.stem)
    for node in page.nodes:
        if isinstance(node, Function | ast.ClassDef):
            yield node.name


def _texts(page: Page) -> str:
    """Docstrings, texts and comments, in one."""
    texts = [
        node.value
        for node in page.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    ]
    comments = re.findall(r"^\s*# (.*)$", page.text, re.MULTILINE)
    return "\n".join([*texts, *comments])


def _imports(page: Page) -> dict[str, tuple[str, str]]:
    """Names that a module has from ours: the path of the module, and the name there."""
    found = {}
    for node in page.nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lakewarden."):
            path = (node.module or "").removeprefix("lakewarden.").replace(".", "/") + ".py"
            found |= {one.asname or one.name: (path, one.name) for one in node.names}
    return found


def _imported_pages(page: Page, paths: Set[str]) -> set[str]:
    """The modules of ours that a module imports, those for the type checker only among them."""
    found: set[str] = set()
    for node in page.nodes:
        if isinstance(node, ast.Import):
            found = found.union(*(_files_of(one.name) for one in node.names))
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                # A name of a package may be one of its modules.
                own = _files_of(f"{node.module}.{one.name}") & paths
                found |= own or _files_of(node.module)
    return found & paths


def _files_of(name: str) -> set[str]:
    """Where a module or package of that name can be; the top folders are linked."""
    package, _, rest = name.partition(".")
    if package != "lakewarden" or not rest:
        return set()
    path = rest.replace(".", "/")
    top = "" if path.split("/")[0] in PRODUCT else "lakewarden/"
    return {f"{top}{path}.py", f"{top}{path}/__init__.py"}


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """What can be reached from a node, itself among it."""
    found, waiting = {start}, [start]
    while waiting:
        more = graph.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found


def _acting(product: Mapping[str, Page]) -> set[Offence]:
    """The functions of modules that change a storage, themselves or through others."""
    acting: set[Offence] = set()
    callers: dict[Offence, set[Offence]] = defaultdict(set)
    for path, page in product.items():
        imported = _imports(page)
        own = {node.name for node in page.tree.body if isinstance(node, Function)}
        for node in page.tree.body:
            if not isinstance(node, Function):
                continue
            for call in (one for one in ast.walk(node) if isinstance(one, ast.Call)):
                name = _called(call)
                if isinstance(call.func, ast.Attribute) and _is_act(call.func):
                    acting.add((path, node.name))
                elif name in own and isinstance(call.func, ast.Name):
                    callers[path, name].add((path, node.name))
                elif name in imported and isinstance(call.func, ast.Name):
                    callers[imported[name]].add((path, node.name))
    waiting = list(acting)
    while waiting:
        more = callers[waiting.pop()] - acting
        acting |= more
        waiting += more
    return acting


def _is_act(function: ast.Attribute) -> bool:
    """Whether a call is one of a storage that changes it."""
    return function.attr in ACTS and "storage" in ast.unparse(function.value).lower()


def _is_participle(name: str) -> bool:
    word = name.strip("_")
    if word in NO_PARTICIPLES:
        return False
    return word in IRREGULAR_PARTICIPLES or (word.endswith("ed") and "_" not in word)


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
    return ""


if __name__ == "__main__":
    checkout = Path(__file__).parents[1]
    found = {rule.__name__: [*rule(pages_of(checkout))] for rule in CHECKOUT_RULES}
    print(offence_list(found), end="")
