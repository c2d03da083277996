"""Finds the errors that a function can raise, by reading the source.

It follows calls by declared types: parameters, return values, attributes of `self`. Errors that a `try` catches are
removed. A value without a declared type (a callback) is not followed, unless `CALLBACKS` lists it.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

SOURCE: Final = Path(__file__).parents[2] / "src"
LEFT_OUT: Final = ("teraflock.cli", "teraflock.client", "teraflock.console", "teraflock.workload.tracing")
ROOT: Final = "teraflock.base.errors.TeraflockError"

CALLBACKS: Final[Mapping[str, tuple[str, ...]]] = {
    "teraflock.instance.changes.InstanceChanges.admits": (
        "teraflock.bill.budget.admission.admission",
        "teraflock.bill.margin.spending.within_limits",
    ),
    "teraflock.dataset.service.DatasetService._admits": (
        "teraflock.bill.budget.admission.admission",
        "teraflock.bill.margin.spending.within_limits",
    ),
    "teraflock.instance.account.service.AccountService._check_record": (
        "teraflock.app.engines.check_record",
    ),
    "teraflock.instance.account.service.AccountService._open_site": ("teraflock.app.engines.open_record",),
    "teraflock.instance.site.service.SiteService._check_record": ("teraflock.app.engines.check_record",),
    "teraflock.image.service.ImageService._publish": ("teraflock.instance.service.InstanceService.publish",),
}
"""Attributes that contain functions, and the functions that `app/wiring.py` assigns to them."""


class Type(NamedTuple):
    name: str
    """Full name of a class."""
    many: bool = False
    """Whether it is a collection of that class."""


class Function(NamedTuple):
    module: str
    owner: str
    """Full name of the class it belongs to, or empty."""
    node: ast.FunctionDef


class Source:
    """All modules, and the meaning of each name in them."""

    def __init__(self) -> None:
        self.trees: dict[str, ast.Module] = {}
        self.names: dict[str, dict[str, str]] = {}
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.home: dict[str, str] = {}
        self.values: dict[str, tuple[str, ast.expr]] = {}
        """Assignments at the top of a module, such as a table of functions."""
        self.typed: dict[str, dict[str, Type]] = {}
        for path in sorted(SOURCE.rglob("*.py")):
            module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
            if not module.startswith(LEFT_OUT):
                self._read(module, ast.parse(path.read_text("utf-8")))
        self.children: dict[str, list[str]] = {}
        for name in self.classes:
            for base in self.bases(name):
                self.children.setdefault(base, []).append(name)

    def _read(self, module: str, tree: ast.Module) -> None:
        names = self.names[module] = {}
        self.trees[module] = tree
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
            elif isinstance(node, ast.Import):
                names.update({each.asname or each.name: each.name for each in node.names})
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                names[node.name] = f"{module}.{node.name}"
                self.functions[f"{module}.{node.name}"] = Function(module, "", node)
            elif isinstance(node, ast.ClassDef):
                self._read_class(module, names, node)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name) and node.value is not None:
                    names.setdefault(target.id, f"{module}.{target.id}")
                    self.values[f"{module}.{target.id}"] = (module, node.value)

    def _read_class(self, module: str, names: dict[str, str], node: ast.ClassDef) -> None:
        name = f"{module}.{node.name}"
        names[node.name] = name
        self.classes[name] = node
        self.home[name] = module
        for each in node.body:
            if isinstance(each, ast.FunctionDef):
                self.functions[f"{name}.{each.name}"] = Function(module, name, each)

    @cache  # noqa: B019
    def full(self, module: str, text: str) -> str:
        """The full name of a dotted name in a module. Follows imports to the definition."""
        first, _, rest = text.partition(".")
        found = self.names[module].get(first, "")
        for _ in range(5):
            if (
                found in self.classes
                or found in self.functions
                or found in self.trees
                or found in self.values
            ):
                break
            home, _, last = found.rpartition(".")
            if self.names.get(home, {}).get(last, found) == found:
                break
            found = self.names[home][last]
        if not rest or not found:
            return found
        return self.full(found, rest) if found in self.trees else f"{found}.{rest}"

    def bases(self, name: str) -> list[str]:
        node, module = self.classes[name], self.home[name]
        return [
            full for base in node.bases if (full := self.full(module, ast.unparse(base).partition("[")[0]))
        ]

    @cache  # noqa: B019  # one source for the whole run
    def family(self, name: str) -> tuple[str, ...]:
        """A class with all its bases, nearest first."""
        above = (
            [each for base in self.bases(name) for each in self.family(base)] if name in self.classes else []
        )
        return (name, *above)

    def is_error(self, name: str) -> bool:
        return ROOT in self.family(name)

    def methods(self, owner: str, name: str) -> Iterator[Function]:
        """A method of a class. For a protocol: the method of every class that has all methods of the protocol."""
        for each in self.family(owner):
            if found := self.functions.get(f"{each}.{name}"):
                yield found
                break
        if owner in self.classes and "Protocol" in [ast.unparse(each) for each in self.classes[owner].bases]:
            for other in self.implementing(owner):
                yield from (found for found in [self.functions.get(f"{other}.{name}")] if found)

    @cache  # noqa: B019
    def implementing(self, protocol: str) -> tuple[str, ...]:
        """Classes with all methods of the protocol. A single method must also have the same return type."""
        wanted = self._returns(protocol)
        others = {name: self._returns(name) for name in self.classes if name != protocol}
        if len(wanted) > 1:
            return tuple(name for name, has in others.items() if wanted.keys() <= has.keys())
        return tuple(name for name, has in others.items() if wanted and wanted.items() <= has.items())

    @cache  # noqa: B019
    def _returns(self, name: str) -> dict[str, str]:
        """The return type of each method. Leaves out properties, which may be plain attributes elsewhere."""
        bodies = [self.classes[each].body for each in reversed(self.family(name)) if each in self.classes]
        methods = [each for body in bodies for each in body if isinstance(each, ast.FunctionDef)]
        plain = [each for each in methods if "property" not in map(ast.unparse, each.decorator_list)]
        return {each.name: ast.unparse(each.returns) if each.returns else "" for each in plain}

    def type_of(self, module: str, annotation: ast.expr | None) -> Type | None:
        if annotation is None:
            return None
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            return self.type_of(module, ast.parse(annotation.value, mode="eval").body)
        if isinstance(annotation, ast.BinOp):
            return self.type_of(module, annotation.left) or self.type_of(module, annotation.right)
        if isinstance(annotation, ast.Subscript):
            return self._type_of_generic(module, annotation)
        full = self.full(module, ast.unparse(annotation))
        return Type(full) if full in self.classes else None

    def _type_of_generic(self, module: str, annotation: ast.Subscript) -> Type | None:
        kind, inside = ast.unparse(annotation.value), annotation.slice
        parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        if kind in ("Annotated", "Final", "ClassVar", "Iterator", "Generator", "AbstractContextManager"):
            return self.type_of(module, parts[0])
        if (own := self.full(module, kind)) in self.classes:
            return Type(own)
        last = parts[0] if ast.unparse(parts[-1]) == "..." else parts[-1]
        found = self.type_of(module, last)
        return Type(found.name, many=True) if found else None

    def attributes(self, owner: str) -> dict[str, Type]:
        """Declared types of a class's attributes. During the reading: those known so far."""
        if owner in self.typed:
            return self.typed[owner]
        found: dict[str, Type] = {}
        self.typed[owner] = found
        for each in reversed([each for each in self.family(owner) if each in self.classes]):
            for node in self.classes[each].body:
                if isinstance(node, ast.AnnAssign) and (
                    kind := self.type_of(self.home[each], node.annotation)
                ):
                    found[ast.unparse(node.target)] = kind
            if init := self.functions.get(f"{each}.__init__"):
                self._assigned(init, found)
        return found

    def _assigned(self, init: Function, found: dict[str, Type]) -> None:
        scope = Scope(self, init)
        for node in ast.walk(init.node):
            target: ast.expr | None = None
            kind: Type | None = None
            if isinstance(node, ast.AnnAssign):
                target, kind = node.target, self.type_of(init.module, node.annotation)
            elif isinstance(node, ast.Assign):
                target, kind = node.targets[0], scope.typed(node.value)
            if kind and isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                found.setdefault(target.attr, kind)


class Scope:
    """The types of the names inside one function."""

    def __init__(self, source: Source, function: Function) -> None:
        self.source, self.module, self.owner = source, function.module, function.owner
        self.local: dict[str, Type] = {}
        self._called: dict[ast.expr, list[Function]] = {}
        self.nested = {
            node.name for node in ast.walk(function.node)
            if isinstance(node, ast.FunctionDef) and node is not function.node
        }  # fmt: skip
        if function.owner:
            self.local["self"] = Type(function.owner)
        for node in ast.walk(function.node):
            if isinstance(node, ast.FunctionDef | ast.Lambda):
                for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                    self._learn(arg.arg, source.type_of(self.module, arg.annotation))
        for node in ast.walk(function.node):
            self._statement(node)
        self._called.clear()  # results from before all names were known

    def _learn(self, name: str, kind: Type | None) -> None:
        if kind:
            self.local.setdefault(name, kind)

    def _statement(self, node: ast.AST) -> None:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            self._learn(node.target.id, self.source.type_of(self.module, node.annotation))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._learn(target.id, self.typed(node.value))
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    for each, value in zip(target.elts, node.value.elts, strict=False):
                        if isinstance(each, ast.Name):
                            self._learn(each.id, self.typed(value))
        elif isinstance(node, ast.NamedExpr):
            self._learn(node.target.id, self.typed(node.value))
        elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
            self._learn(node.target.id, _one(self.typed(node.iter)))
        elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
            self._learn(node.optional_vars.id, self.typed(node.context_expr))

    def typed(self, node: ast.expr) -> Type | None:
        source = self.source
        if isinstance(node, ast.Name):
            return self.local.get(node.id)
        if isinstance(node, ast.Attribute):
            if not (of := self.typed(node.value)) or of.many:
                return None
            if kind := source.attributes(of.name).get(node.attr):
                return kind
            for method in source.methods(of.name, node.attr):  # a property
                return source.type_of(method.module, method.node.returns)
            return None
        if isinstance(node, ast.Subscript):
            return _one(self.typed(node.value))
        if isinstance(node, ast.IfExp):
            return self.typed(node.body) or self.typed(node.orelse)
        if isinstance(node, ast.BoolOp):
            return next((kind for each in node.values if (kind := self.typed(each))), None)
        if isinstance(node, ast.Call):
            return self._returned(node)
        return None

    def _returned(self, node: ast.Call) -> Type | None:
        source = self.source
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "values", "pop"):
            of = self.typed(node.func.value)
            if of and of.many:
                return of if node.func.attr == "values" else _one(of)
        if isinstance(node.func, ast.Name) and node.func.id in (
            "sorted",
            "list",
            "tuple",
            "next",
            "min",
            "max",
        ):
            of = self.typed(node.args[0]) if node.args else None
            return _one(of) if of and node.func.id in ("next", "min", "max") else of
        full = source.full(self.module, ast.unparse(node.func)) if _dotted(node.func) else ""
        if full in source.classes:
            return Type(full)
        for function in self.called(node.func):
            return source.type_of(function.module, function.node.returns)
        return None

    def called(self, node: ast.expr) -> list[Function]:
        """The functions that a name or attribute refers to."""
        if node not in self._called:
            self._called[node] = self._resolved(node)
        return self._called[node]

    def _resolved(self, node: ast.expr) -> list[Function]:
        source = self.source
        if _dotted(node):
            text = ast.unparse(node)
            if text.partition(".")[0] not in self.local and text not in self.nested:
                full = source.full(self.module, text)
                if found := source.functions.get(full):
                    return [found]
                if full in source.classes:
                    return list(source.methods(full, "__init__"))
        if isinstance(node, ast.Attribute):
            of = self.typed(node.value)
            if of and not of.many:
                named = CALLBACKS.get(f"{of.name}.{node.attr}", ())
                return [*source.methods(of.name, node.attr), *(source.functions[each] for each in named)]
        return []


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and _dotted(node)


def _one(kind: Type | None) -> Type | None:
    return Type(kind.name) if kind else None


def _dotted(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _dotted(node.value))


class Handler(NamedTuple):
    kinds: frozenset[str]
    """Names of the classes it catches."""
    again: bool
    """Whether it raises the caught error again."""


class Part(NamedTuple):
    """A part of a function: what it raises and calls directly, and its `try` statements."""

    errors: set[str]
    calls: set[str]
    tries: list[tuple["Part", list[Handler]]]


class Raised:
    """The errors of functions, as far as calls can be followed."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.known: dict[str, frozenset[str]] = {}
        """Full names of the error classes that a function can raise, by the function's full name."""
        self._parts: dict[str, Part] = {}

    def follow(self, names: Iterable[str]) -> None:
        """Fill `known` for these functions and everything they call, until nothing new is found."""
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in self._parts:
                self._parts[name] = Reader(self.source, self.source.functions[name]).part()
                waiting += _all_calls(self._parts[name])
        before: dict[str, frozenset[str]] = {}
        self.known = dict.fromkeys(self._parts, frozenset[str]())
        while before != self.known:
            before = dict(self.known)
            for name, part in self._parts.items():
                self.known[name] = frozenset(self._raised(part))

    def _raised(self, part: Part) -> set[str]:
        found = part.errors.union(*(self.known[each] for each in part.calls))
        for body, handlers in part.tries:
            left = self._raised(body)
            for handler in handlers:
                if not handler.again:
                    left = {each for each in left if not self._catches(handler, each)}
            found |= left
        return found

    def _catches(self, handler: Handler, error: str) -> bool:
        return "Exception" in handler.kinds or not handler.kinds.isdisjoint(self.source.family(error))


class Reader:
    """Reads one function into a `Part`."""

    def __init__(self, source: Source, function: Function) -> None:
        self.source, self.function = source, function
        self.scope = Scope(source, function)

    def part(self) -> Part:
        return self._part(self.function.node.body)

    def _part(self, nodes: Iterable[ast.AST]) -> Part:
        part = Part(set(), set(), [])
        for node in nodes:
            self._read(node, part)
        return part

    def _read(self, node: ast.AST, part: Part) -> None:
        if isinstance(node, ast.Try):
            part.tries.append((self._part(node.body), [self._handler(each) for each in node.handlers]))
            for each in (*node.handlers, *node.orelse, *node.finalbody):
                self._read(each, part)
            return
        if isinstance(node, ast.ExceptHandler):  # this class is caught, not raised
            for statement in node.body:
                self._read(statement, part)
            return
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            self._named(self.source.full(self.scope.module, ast.unparse(node)) if _dotted(node) else "", part)
            part.calls.update(map(_name, self.scope.called(node)))
        for child in ast.iter_child_nodes(node):
            self._read(child, part)

    def _named(self, full: str, part: Part) -> None:
        """An error that is created, or a table at the top of a module that contains functions and errors."""
        if full in self.source.classes and self.source.is_error(full):
            part.errors.add(full)
        elif full in self.source.values:
            module, value = self.source.values[full]
            names = [
                self.source.full(module, ast.unparse(each)) for each in ast.walk(value) if _is_name(each)
            ]
            part.calls.update(each for each in names if each in self.source.functions)
            part.errors.update(
                each for each in names if each in self.source.classes and self.source.is_error(each)
            )

    def _handler(self, node: ast.ExceptHandler) -> Handler:
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type] if node.type else []
        names = {ast.unparse(each) for each in kinds}
        again = any(isinstance(each, ast.Raise) and each.exc is None for each in ast.walk(node))
        if not kinds or names & {"Exception", "BaseException"}:
            return Handler(frozenset({"Exception"}), again)
        return Handler(frozenset(self.source.full(self.scope.module, each) for each in names), again)


def _all_calls(part: Part) -> set[str]:
    return part.calls.union(*(_all_calls(body) for body, _ in part.tries))


def _name(function: Function) -> str:
    return f"{function.owner or function.module}.{function.node.name}"
