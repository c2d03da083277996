"""Only `base/clock.py` asks the system what time it is: bills and loops must replay exactly."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "teraflock"
ASKING = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("date", "today"),
    ("time", "time"),
    ("time", "time_ns"),
}


def questions(source: str) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and (node.func.value.id, node.func.attr) in ASKING
    ]


def test_nobody_else_asks_the_system_for_the_time() -> None:
    asking = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != PACKAGE / "base" / "clock.py"
        for line in questions(path.read_text("utf-8"))
    ]
    assert asking == []


def test_the_check_sees_a_question() -> None:
    assert questions("from datetime import datetime\nx = datetime.now()\n") == [2]
