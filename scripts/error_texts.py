"""The error texts of the product, read from its syntax trees: kind, code, what, why, what now.

Nothing is run. A value that only a run knows stands as `{name}`; a text that a function is given is
looked up at the calls of that function.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
FOLDERS = ("engine", "lakewarden", "procedures", "sql_ext")
KINDS = ("InvalidRequest", "Conflict", "Unavailable", "Unsettled", "CorruptTable", "Defect")
PARTS = ("what", "why", "now")

# Calls of a function beyond which its texts are shown once, with the names of its parameters.
_CALLS_SHOWN_MAX = 8
_DEPTH_MAX = 6
# Parameters that hold pieces of a text, and not a value of the table.
_TEXT_NAMES = frozenset(
    "act because cause code fault how instead kind now part problem reason remedy thing text what"
    " why words".split()
)
_STRIPS = frozenset({"strip", "rstrip", "lstrip"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class ErrorText:
    """One error as the code makes it; each part in all the forms that it can take."""

    kind: str
    code: str
    what: tuple[str, ...]
    why: tuple[str, ...]
    now: tuple[str, ...]
    place: str

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        return self.what, self.why, self.now

    @property
    def words_max(self) -> int:
        """Words of the longest form; a value that only a run knows counts as one."""
        return sum(max((_words(text) for text in part), default=0) for part in self.parts)

    @property
    def missing_parts(self) -> tuple[str, ...]:
        forms = dict(zip(PARTS, self.parts, strict=True))
        return tuple(name for name, part in forms.items() if not part or not all(part))


def error_texts(modules: Sequence["Module"] | None = None) -> tuple[ErrorText, ...]:
    """Every error text, in the order of kind, code and place."""
    source = _Source(tuple(modules) if modules is not None else modules_of(CHECKOUT))
    found = [text for module in source.modules for text in _texts_of(source, module)]
    order = {kind: n for n, kind in enumerate(KINDS)}
    return tuple(
        sorted(set(found), key=lambda one: (order[one.kind], one.code, one.place, one.parts))
    )


def modules_of(checkout: Path) -> tuple["Module", ...]:
    """The modules of the product; links are not followed."""
    paths = [path for folder in FOLDERS for path in (checkout / folder).rglob("*.py")]
    own = sorted(path for path in paths if not any(one.is_symlink() for one in path.parents))
    return tuple(
        Module(path.relative_to(checkout).as_posix(), path.read_text(encoding="utf-8"))
        for path in own
    )


@dataclass(frozen=True)
class Module:
    """A module's tree, with what looking things up in it needs."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.path)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        return tuple(node for node in self.nodes if isinstance(node, ast.Call))

    @cached_property
    def constants(self) -> Mapping[str, ast.expr]:
        return dict(_assignments(self.tree.body))

    @cached_property
    def imported(self) -> Mapping[str, tuple[str, str]]:
        """Names from other modules of ours: the path of the module, and the name there."""
        found = {}
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lakewarden."):
                path = (node.module or "").removeprefix("lakewarden.").replace(".", "/") + ".py"
                found |= {one.asname or one.name: (path, one.name) for one in node.names}
        return found

    def function_around(self, node: ast.AST) -> _Function | None:
        while (node := self.parents.get(node, self.tree)) is not self.tree:
            if isinstance(node, _Function):
                return node
        return None


@dataclass(frozen=True)
class _Scope:
    """Where an expression stands, and what the parameters there were given."""

    module: Module
    function: _Function | None = None
    given: Mapping[str, "_Bound"] = field(default_factory=dict)


@dataclass(frozen=True)
class _Bound:
    node: ast.expr
    scope: _Scope


@dataclass(frozen=True)
class _Source:
    """All modules, and in which scopes their functions are called."""

    modules: tuple[Module, ...]

    @cached_property
    def by_path(self) -> Mapping[str, Module]:
        return {module.path: module for module in self.modules}

    @cached_property
    def calls_by_name(self) -> Mapping[str, list[tuple[Module, ast.Call]]]:
        found: dict[str, list[tuple[Module, ast.Call]]] = {}
        for module in self.modules:
            for call in module.calls:
                found.setdefault(_called(call), []).append((module, call))
        return found

    def scopes(
        self, module: Module, function: _Function | None, wanted: frozenset[str], depth: int = 0
    ) -> list[_Scope]:
        """One for each call that gives the wanted parameters; a single one where none is wanted."""
        alone = _Scope(module, function)
        if function is None or depth >= _DEPTH_MAX or not wanted & set(_parameters(function)):
            return [alone]
        found = []
        for other, call in self.calls_by_name.get(function.name, ()):
            if function.name.startswith("_") and other is not module:
                continue
            caller = other.function_around(call)
            arguments = [*call.args, *(one.value for one in call.keywords)]
            for scope in self.scopes(other, caller, _names(arguments) & _TEXT_NAMES, depth + 1):
                given = _given(self, function, call, scope)
                found += [_Scope(module, function, one) for one in given]
        return found or [alone]

    def constant(self, module: Module, name: str) -> _Bound | None:
        if name in module.constants:
            return _Bound(module.constants[name], _Scope(module))
        path, there = module.imported.get(name, ("", ""))
        other = self.by_path.get(path)
        return None if other is None else self.constant(other, there)

    def forms(self, node: ast.AST, scope: _Scope, depth: int = 0) -> tuple[str, ...]:
        """All texts that an expression can be, as far as the code tells."""
        if depth > _DEPTH_MAX:
            return (_placeholder(node),)
        match node:
            case ast.Constant(value=str(text)):
                return (text,)
            case ast.JoinedStr(values=values):
                return ("".join(self.longest(value, scope, depth + 1) for value in values),)
            case ast.FormattedValue(value=value):
                return (self.longest(value, scope, depth + 1),)
            case ast.IfExp(body=body, orelse=other):
                return self._any_of((body, other), scope, depth)
            case ast.BoolOp(values=values):
                return self._any_of(values, scope, depth)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return (
                    self.longest(left, scope, depth + 1) + self.longest(right, scope, depth + 1),
                )
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _STRIPS:
                return self.forms(inner, scope, depth + 1)
            case ast.Subscript(value=table, slice=key):
                return self._looked_up(table, key, scope, depth) or (_placeholder(node),)
            case ast.Name(id=name):
                return self._named(name, scope, depth)
            case ast.Attribute(value=ast.Name(id=name), attr="key"):
                return (self._setting(name, scope) or _placeholder(node),)
        return (_placeholder(node),)

    def longest(self, node: ast.AST, scope: _Scope, depth: int = 0) -> str:
        return max(self.forms(node, scope, depth), key=lambda text: (_words(text), text))

    def _any_of(self, nodes: Sequence[ast.AST], scope: _Scope, depth: int) -> tuple[str, ...]:
        forms = (form for node in nodes for form in self.forms(node, scope, depth + 1))
        return tuple(dict.fromkeys(forms))

    def _named(self, name: str, scope: _Scope, depth: int) -> tuple[str, ...]:
        own = f"{{{name.strip('_').lower()}}}"
        bound = self._bound(name, scope)
        forms = self._any_of([one.node for one in bound], bound[0].scope, depth) if bound else ()
        return tuple(dict.fromkeys(own if _is_placeholder(one) else one for one in forms)) or (own,)

    def _bound(self, name: str, scope: _Scope) -> list[_Bound]:
        if name in scope.given:
            return [scope.given[name]]
        if scope.function is not None:
            if name in _parameters(scope.function):
                return []
            local = [
                value
                for node in ast.walk(scope.function)
                for other, value in _assignments([node])
                if other == name
            ]
            if local:
                return [_Bound(value, scope) for value in local]
        constant = self.constant(scope.module, name)
        return [] if constant is None else [constant]

    def _setting(self, name: str, scope: _Scope) -> str:
        """The key of a setting that is a constant."""
        bound = self._bound(name, scope)
        match bound[0].node if bound else None:
            case ast.Call(args=[key, *_]):
                return self.longest(key, bound[0].scope)
        return ""

    def _looked_up(
        self, table: ast.expr, key: ast.expr, scope: _Scope, depth: int
    ) -> tuple[str, ...]:
        """The texts of a table that is a dictionary in the code: of one key, or of all."""
        bound = self._bound(table.id, scope) if isinstance(table, ast.Name) else []
        node, there = (bound[0].node, bound[0].scope) if bound else (table, scope)
        if not isinstance(node, ast.Dict):
            return ()
        keys = self.forms(key, scope, depth + 1)
        pairs = zip(node.keys, node.values, strict=True)
        chosen = [
            value for one, value in pairs if isinstance(one, ast.Constant) and keys == (one.value,)
        ]
        return self._any_of(chosen or node.values, there, depth)

    def tuples(self, node: ast.expr, scope: _Scope) -> list[tuple[_Bound, ...]]:
        """The tuples that an unpacked argument can be, where they stand in the code."""
        match node:
            case ast.Tuple(elts=items):
                return [tuple(_Bound(one, scope) for one in items)]
            case ast.Dict(values=values):
                return [one for value in values for one in self.tuples(value, scope)]
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[_, *others]):
                return [one for inner in (table, *others) for one in self.tuples(inner, scope)]
            case ast.Subscript(value=table):
                return self.tuples(table, scope)
            case ast.Name(id=name):
                bound = self._bound(name, scope)
                return [one for inner in bound for one in self.tuples(inner.node, inner.scope)]
        return []


def _texts_of(source: _Source, module: Module) -> Iterator[ErrorText]:
    for call in module.calls:
        given = {one.arg: one.value for one in call.keywords if one.arg}
        if "what" not in given or not call.args or _called(call) not in (*KINDS, "kind"):
            continue
        code, function = call.args[0], module.function_around(call)
        if isinstance(code, ast.Name) and function is not None and function.name == "_rebuild":
            continue
        if isinstance(code, ast.Attribute):
            yield from _of_values(source, module, call, given)
            continue
        names = _names([code, *_inner(code)]) | _TEXT_NAMES & _names(
            [*map(given.get, PARTS), *(one for part in PARTS for one in _inner(given.get(part)))]
        )
        scopes = source.scopes(module, function, names)
        texts = {text for scope in scopes for text in _in_scope(source, scope, call, given)}
        if len(scopes) > _CALLS_SHOWN_MAX and len({one.code for one in texts}) == 1:
            yield _in_short(source, _Scope(module, function), call, given, texts)
        else:
            yield from texts


def _in_scope(
    source: _Source, scope: _Scope, call: ast.Call, given: Mapping[str, ast.expr]
) -> Iterator[ErrorText]:
    node = call.args[0]
    for code in source.forms(node, scope):
        known = scope
        if isinstance(node, ast.Name):
            named = {**scope.given, node.id: _Bound(ast.Constant(code), scope)}
            known = _Scope(scope.module, scope.function, named)
        yield _text(
            source, _called(call), code, {n: _Bound(v, known) for n, v in given.items()}, call
        )


def _in_short(
    source: _Source,
    scope: _Scope,
    call: ast.Call,
    given: Mapping[str, ast.expr],
    texts: set[ErrorText],
) -> ErrorText:
    """One text for many calls: it names parameters, unless a call is too long or lacks a part."""
    (wrong, *_) = sorted(texts, key=lambda one: (not one.missing_parts, -one.words_max, one.parts))
    short = next(iter(_in_scope(source, scope, call, given)))
    return wrong if wrong.missing_parts or wrong.words_max > 45 else short


def _of_values(
    source: _Source, module: Module, call: ast.Call, given: Mapping[str, ast.expr]
) -> Iterator[ErrorText]:
    """An error made from a value that has code, why and remedy: one text for each such value."""
    here = _Scope(module, module.function_around(call))
    for other in source.modules:
        for made in other.calls:
            value = {one.arg: one.value for one in made.keywords if one.arg}
            if not {"code", "why", "remedy"} <= value.keys():
                continue
            passes = isinstance(value.get("passes"), ast.Constant)
            there = _Scope(other, other.function_around(made))
            (code,) = source.forms(value["code"], there)
            parts = {
                "what": _Bound(given["what"], here),
                "why": _Bound(value["why"], there),
                "now": _Bound(value["remedy"], there),
            }
            yield _text(source, "Conflict" if passes else "InvalidRequest", code, parts, made)


def _text(
    source: _Source, kind: str, code: str, parts: Mapping[str, _Bound], call: ast.Call
) -> ErrorText:
    forms = {name: source.forms(one.node, one.scope) for name, one in parts.items()}
    if kind == "Defect":
        forms.setdefault("now", ("This is a defect of Lakewarden: please report it.",))
    what, why, now = (forms.get(part, ()) for part in PARTS)
    module = parts["what"].scope.module
    return ErrorText(kind, code, what, why, now, f"{module.path}:{call.lineno:05}")


def _given(
    source: _Source, function: _Function, call: ast.Call, scope: _Scope
) -> list[Mapping[str, _Bound]]:
    """What a call gives to the parameters of a function; nothing where it does not fit."""
    names = _parameters(function)
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    rows: list[list[_Bound]] = [[]]
    for argument in call.args:
        if isinstance(argument, ast.Starred):
            unpacked = source.tuples(argument.value, scope)
            rows = [[*row, *one] for row in rows for one in unpacked]
        else:
            rows = [[*row, _Bound(argument, scope)] for row in rows]
    keywords = {one.arg: _Bound(one.value, scope) for one in call.keywords if one.arg}
    if not keywords.keys() <= set(names):
        return []
    defaults = _defaults(function, scope)
    return [
        {**defaults, **dict(zip(names, row, strict=False)), **keywords}
        for row in rows
        if len(row) <= len(names)
    ]


def _defaults(function: _Function, scope: _Scope) -> dict[str, _Bound]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(named), reversed(arguments.defaults), strict=False)]
    pairs += [
        (one, value)
        for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value is not None
    ]
    return {one.arg: _Bound(value, scope) for one, value in pairs}


def _parameters(function: _Function) -> list[str]:
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _assignments(body: Sequence[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                yield name, value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for one, value in zip(names, values, strict=False):
                    if isinstance(one, ast.Name):
                        yield one.id, value


def _names(nodes: Iterable[ast.expr | None]) -> frozenset[str]:
    return frozenset(one.id for one in nodes if isinstance(one, ast.Name))


def _inner(text: ast.expr | None) -> list[ast.expr]:
    """The values in an f-string."""
    pieces = text.values if isinstance(text, ast.JoinedStr) else ()
    return [one.value for one in pieces if isinstance(one, ast.FormattedValue)]


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
    return ""


def _placeholder(node: ast.AST) -> str:
    """The name that stands for a value in a text."""
    match node:
        case ast.Name(id=name):
            return f"{{{name.strip('_').lower()}}}"
        case ast.Attribute(value=value, attr=name):
            of_owner = name in {"value", "key", "name", "requested"} and isinstance(value, ast.Name)
            return f"{{{(value.id if of_owner else name).strip('_').lower()}}}"
        case ast.Call(func=ast.Attribute(attr="join"), args=[one]):
            return _placeholder(one)
        case ast.Call(args=[one, *_]):
            return _placeholder(one)
        case ast.Call(func=ast.Name() | ast.Attribute() as function):
            return _placeholder(function)
        case ast.Starred(value=value) | ast.Subscript(value=value) | ast.BinOp(left=value):
            return _placeholder(value)
        case ast.GeneratorExp(generators=[ast.comprehension(iter=value), *_]):
            return _placeholder(value)
    return "{value}"


def _is_placeholder(text: str) -> bool:
    return text.startswith("{") and text.endswith("}") and text.count("{") == 1


def _words(text: str) -> int:
    return len(text.split())
