"""Functions and files stay small enough to keep in mind."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "teraflock"
FILE_LINES_MAX = 460
FUNCTION_LINES_P95_MAX = 22
FUNCTION_LINES_MAX = 80


def files() -> dict[str, str]:
    return {str(path.relative_to(PACKAGE)): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def test_no_file_outgrows_its_bound() -> None:
    lines = {name: text.count("\n") for name, text in files().items()}
    assert {name: count for name, count in lines.items() if count > FILE_LINES_MAX} == {}


def test_functions_are_short() -> None:
    sizes = {
        f"{name}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for name, text in files().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: size for name, size in sizes.items() if size > FUNCTION_LINES_MAX} == {}
    assert sorted(sizes.values())[int(len(sizes) * 0.95)] <= FUNCTION_LINES_P95_MAX
