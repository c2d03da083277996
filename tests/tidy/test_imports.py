"""Imports point one way: a folder imports only folders above it, and edges import each other only as listed here.

Without a check, folders do not create layers in Python: in most large code bases, the packages end up in one cycle.
"""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "teraflock"

DOMAIN = (
    "base", "storage", "tenant", "workload", "catalog", "offer", "estimate", "plan", "fleet", "network", "image",
    "dataset", "instance", "meter", "bill", "run", "reconcile",
)  # fmt: skip
"""In the order of the data: each folder may import those before it."""

EDGES = {
    "drivers": {"host"},
    "host": set[str](),
    "wire": set[str](),
    "words": {"wire"},
    "client": {"wire"},
    "api": {"wire"},
    "cli": {"wire", "words", "client", "app"},
    "console": {"client", "wire", "words"},
    "app": {"drivers", "api", "client", "console", "host", "wire"},
}
"""Edges may import the whole domain, and these other edges."""


def folders() -> list[str]:
    return sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py")))


@cache
def imported(path: Path) -> tuple[tuple[int, str], ...]:
    """The line and the full name of every import in a file, also inside functions."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} has a relative import: write the full name"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return tuple(found)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the folder of every import of our own modules in a file."""
    for line, name in imported(path):
        parts = name.split(".")
        if parts[0] == "teraflock" and len(parts) > 1 and (PACKAGE / parts[1]).is_dir():
            yield line, parts[1]


def modules() -> dict[str, set[str]]:
    """Every module of ours with the modules that it imports."""
    paths = {_module(path): path for path in PACKAGE.rglob("*.py")}
    found = {name: set[str]() for name in paths}
    for name, path in paths.items():
        for _, target in imported(path):
            known = target if target in paths else target.rpartition(".")[0]
            if known in paths and known != name:
                found[name].add(known)
    return found


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def allowed(folder: str) -> set[str]:
    if folder in EDGES:
        return {*DOMAIN, folder, *EDGES[folder]}
    return {*DOMAIN[: DOMAIN.index(folder) + 1]}


@pytest.mark.parametrize("folder", folders())
def test_imports_point_one_way(folder: str) -> None:
    assert folder in DOMAIN or folder in EDGES, f"{folder}/ is not in the order of folders: add it here"
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {target}/"
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        for line, target in imports(path)
        if target not in allowed(folder)
    ]
    assert wrong == []


def test_there_are_no_import_cycles() -> None:
    """Also inside a folder, and inside functions."""
    known = modules()
    assert len(known) > 300, "the modules are found"
    in_order = list(TopologicalSorter(known).static_order())  # raises CycleError, which names the cycle
    assert len(in_order) == len(known)


def test_no_store_imports_a_service() -> None:
    """Stores are below all services, so any noun may read another's rows, whichever builds on the other."""
    stores = {name: targets for name, targets in modules().items() if name.endswith(".store")}
    assert len(stores) > 20, "the stores are found"
    wrong = {
        name: targets for name, targets in stores.items() if any(t.endswith(".service") for t in targets)
    }
    assert wrong == {}


def test_the_check_finds_every_kind_of_import(tmp_path: Path) -> None:
    file = tmp_path / "sample.py"
    file.write_text(
        "import teraflock.offer.model\nfrom teraflock import cli\ndef f():\n    from teraflock.storage.open import x\n"
    )
    assert sorted(imports(file)) == [(1, "offer"), (2, "cli"), (4, "storage")]


def test_every_folder_has_a_docstring() -> None:
    bare = [
        folder
        for folder in folders()
        if not ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text()))
    ]
    assert bare == []
