"""One noun has one name and one file in every layer, so the way from a route to its command needs no search."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "teraflock"
LAYERS = ("wire", "client", "cli")
EDGES = ("wire", "api", "client", "cli", "words")

EXCEPTIONS = {
    ("client", "health"): "one request about the whole server: `Client.health`",
    ("client", "whoami"): "one request about the whole server: `Client.whoami`",
    ("cli", "health"): "`tera doctor` reads it; there is no command of its own",
}
"""(layer, noun) of a route that has no file there, and why."""


def nouns(folder: Path) -> set[str]:
    """Names of the modules and packages of a folder."""
    files = {path.stem for path in folder.glob("*.py")}
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    return (files | packages) - {"__init__"}


def missing(package: Path, exceptions: set[tuple[str, str]]) -> list[str]:
    """Files that a noun with routes should have, and exceptions that no longer are any."""
    routes = nouns(package / "api" / "routes") - {"all"}
    absent = {(layer, noun) for layer in LAYERS for noun in routes - nouns(package / layer)}
    return [f"{layer}/{noun}.py is missing" for layer, noun in sorted(absent - exceptions)] + [
        f"{layer}/{noun}.py exists: remove its exception" for layer, noun in sorted(exceptions - absent)
    ]


def repeated_types(package: Path) -> dict[str, list[str]]:
    """Classes at the top of modules of the edges that share a name. Private ones are nobody else's business."""
    found = defaultdict[str, list[str]](list)
    for edge in EDGES:
        for path in sorted((package / edge).rglob("*.py")):
            for name in _types(path):
                found[name].append(str(path.relative_to(package)))
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def _types(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_every_noun_with_routes_has_a_file_in_every_layer() -> None:
    assert missing(PACKAGE, set(EXCEPTIONS)) == []


def test_converters_are_named_after_routes() -> None:
    assert nouns(PACKAGE / "api" / "convert") - nouns(PACKAGE / "api" / "routes") == set()


def test_clients_are_named_after_routes() -> None:
    """Besides what all of them share."""
    shared = {"client", "errors", "noun", "transport"}
    assert nouns(PACKAGE / "client") - nouns(PACKAGE / "api" / "routes") == shared


def test_type_names_of_the_edges_are_unique() -> None:
    assert repeated_types(PACKAGE) == {}


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    for layer in ("api/routes", "wire", "client", "cli"):
        (tmp_path / layer).mkdir(parents=True)
        (tmp_path / layer / "instance.py").write_text("class Same: ...\nclass _Private: ...\n")
    return tmp_path


def test_the_checks_find_what_they_look_for(sample: Path) -> None:
    assert missing(sample, set()) == []
    assert missing(sample, {("cli", "instance")}) == ["cli/instance.py exists: remove its exception"]
    assert list(repeated_types(sample)) == ["Same"]
    (sample / "client" / "instance.py").rename(sample / "client" / "instances.py")
    assert missing(sample, set()) == ["client/instance.py is missing"]
