"""A type name has one meaning in the whole package, and nothing is defined that nothing uses."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "teraflock"

USED_ELSEWHERE = {
    "capture_signals": "uvicorn calls it",
    "get_command": "click calls it",
    "write_family": "lab/ writes families with it",
    "is_capturing": "PyTorch calls it while a script is traced",
}


@cache
def definitions() -> list[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """The functions and classes at the top level of every module, without their bodies."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if "_template" not in path.parts:
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    node.body = []  # all bodies together take 200 MB
                    found.append((str(path.relative_to(PACKAGE)), node))
    return found


def test_type_names_are_unique() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module, node in definitions():
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            homes[node.name].append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_every_function_and_class_is_used() -> None:
    """By the package, its tests or its benchmarks. A name that occurs once is only its own definition."""
    words: Counter[str] = Counter()
    for folder in ("src", "tests", "bench", "lab"):
        for path in (ROOT / folder).rglob("*.py"):
            words.update(re.findall(r"[A-Za-z_]\w*", path.read_text("utf-8")))
    unused = [
        f"{module}:{node.name}"
        for module, node in definitions()
        if not node.decorator_list and words[node.name] == 1 and node.name not in USED_ELSEWHERE
    ]
    assert unused == []
