"""Only `base/clock.py` reads the system time: bills and loops must replay exactly.

Only `base/events.py` makes events.
"""

import ast
import re
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
    if not any(f"{name}.{act}(" in source for name, act in ASKING):
        return []  # most files: parsing them all takes seconds
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and (node.func.value.id, node.func.attr) in ASKING
    ]


def test_only_the_clock_module_reads_the_system_time() -> None:
    asking = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != PACKAGE / "base" / "clock.py"
        for line in questions(path.read_text("utf-8"))
    ]
    assert asking == []


def test_the_check_finds_a_clock_read() -> None:
    assert questions("from datetime import datetime\nx = datetime.now()\n") == [2]


def test_events_are_made_in_one_place() -> None:
    """Lists are in the order of the ids of events: an id of another form would be in the wrong place for ever."""
    makes = re.compile(r"(?<![\w.])Event\((?!msgspec)")
    found = {
        str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if makes.search(path.read_text())
    }
    assert found == {"base/events.py", "storage/events.py"}
