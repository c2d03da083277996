"""SQL is only in `store.py` files and in `storage/`, so that queries are easy to find."""

import ast
import re
from enum import StrEnum
from pathlib import Path

import pytest

from teraflock.instance.states import ENDED
from teraflock.run.states import OVER
from teraflock.storage.table import among

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


BY_HAND = re.compile(r"phase\s+(NOT\s+)?IN\s*\(\s*'|phase\s*<>\s*'\w+'\s+AND\s+(\w\.)?phase\s*<>")


def test_sets_of_phases_have_names() -> None:
    """A set that is written out again in SQL is forgotten when a phase is added: `among(ENDED)` writes it."""
    by_hand = [
        f"{path.relative_to(PACKAGE)}: {found[0]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if (found := BY_HAND.search(path.read_text("utf-8")))
    ]
    assert by_hand == []
    assert BY_HAND.search("WHERE i.phase NOT IN ('gone', 'failed')")
    assert BY_HAND.search("phase <> 'gone' AND i.phase <> 'failed'")


def test_an_instance_ends_in_the_named_phases() -> None:
    """Python code uses `ENDED`, too."""
    by_hand = [
        f"{path.relative_to(PACKAGE)}: {found[0]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE) != Path("instance/states.py")
        and (found := re.search(r"\bPhase\.(FAILED|GONE), Phase\.(FAILED|GONE)\b", path.read_text("utf-8")))
    ]
    assert by_hand == []


@pytest.mark.parametrize(
    ("migration", "states"), [("0034_bids.sql", ENDED), ("0025_runs.sql", OVER)], ids=["instances", "runs"]
)
def test_partial_indexes_have_the_same_text(migration: str, states: frozenset[StrEnum]) -> None:
    """Otherwise SQLite does not use them."""
    text = (PACKAGE / "storage" / "migrations" / migration).read_text("utf-8")
    assert f"phase NOT IN {among(states)}" in text


def states_by_hand(source: str) -> list[str]:
    """The tables whose `state` a file changes without a `LifeCycle`."""
    texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    found = (re.search(r"\bUPDATE (\w+) SET .*\bstate = ", str(text), re.DOTALL) for text in texts)
    return [each[1] for each in found if each and not re.search(r" WHERE .*\bstate = ", each[0], re.DOTALL)]


def test_only_life_cycles_change_states() -> None:
    """A statement written by hand would not know the table of allowed changes."""
    by_hand = {
        str(path.relative_to(PACKAGE)): tables
        for path in sorted(PACKAGE.rglob("store.py"))
        if "UPDATE" in (text := path.read_text("utf-8")) and (tables := states_by_hand(text))
    }
    assert by_hand == {}
    assert states_by_hand("a = 'UPDATE image SET size_bytes = 1, state = :state WHERE id = :id'") == ["image"]
    assert states_by_hand("a = \"UPDATE image SET size_bytes = 1 WHERE state = 'ready'\"") == []
