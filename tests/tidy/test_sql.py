"""SQL is only in `store.py` files and in `storage/`, so that queries are easy to find."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "teraflock"

STATEMENT = re.compile(
    r"\bSELECT\b.+\bFROM\b|\bINSERT\s+INTO\b|\bUPDATE\b.+\bSET\b|\bDELETE\s+FROM\b|\bCREATE\s+(TABLE|INDEX)\b",
    re.DOTALL,
)


def statements(source: str) -> list[int]:
    """The lines of all SQL strings in a file."""
    if not STATEMENT.search(source):
        return []  # most files: parsing them all takes seconds
    tree = ast.parse(source)
    return sorted(
        {
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and STATEMENT.search(node.value)
        }
    )


def test_sql_is_only_in_stores() -> None:
    astray = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "store.py" and path.relative_to(PACKAGE).parts[0] != "storage"
        for line in statements(path.read_text("utf-8"))
    ]
    assert astray == []


def test_the_check_finds_sql() -> None:
    source = 'a = "SELECT id\\n FROM t"\nb = f"DELETE FROM {a}"\nc = "Select a plan from the list"\n'
    assert statements(source) == [1, 2]
