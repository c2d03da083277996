"""The tables of life-cycles, written a second time: a change of state that is allowed by mistake fails here."""

from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import teraflock
from teraflock.storage.database import Database, Transaction
from teraflock.storage.life_cycle import LifeCycle

ALLOWED = {
    "dataset": "uploading > ready deleting; ready > deleting; deleting >",
    "disk_copy": "making > ready removing; ready > removing; removing >",
    "host": (
        "ready > draining away gone; draining > ready away gone; away > ready draining gone; gone > ready"
    ),
    "image": "waiting > ready failed deleting; ready > waiting deleting; failed > waiting deleting; deleting >",
    "organisation": (
        "active > suspended deleting; suspended > active suspended deleting; deleting > deleting deleted; deleted >"
    ),
    "snapshot": "making > ready failed; ready >; failed >",
    "volume_copy": "making > ready removing; ready > removing; removing >",
    "volume_snapshot": "making > ready deleting; ready > deleting; deleting >",
}
"""Of each table of the database. Phases of instances and runs are in `tests/unit/`."""

PACKAGE = Path(teraflock.__file__).parent


def cycles() -> dict[str, LifeCycle[Any]]:
    """All life-cycles of the product, by table."""
    files = [path for path in PACKAGE.rglob("*.py") if " = LifeCycle(" in path.read_text("utf-8")]
    names = [".".join(("teraflock", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in files]
    values = [value for name in names for value in vars(import_module(name)).values()]
    return {each.table: each for each in values if isinstance(each, LifeCycle)}


def test_every_life_cycle_is_written_a_second_time() -> None:
    assert sorted(cycles()) == sorted(ALLOWED)


@pytest.mark.parametrize("table", sorted(ALLOWED))
def test_only_listed_changes_of_state_are_made(store: Database, table: str) -> None:
    lines = [line.partition(" >") for line in ALLOWED[table].split("; ")]
    allowed = {before: after.split() for before, _, after in lines}
    known = cycles()[table]
    assert sorted(known.moves) == sorted(allowed)
    cycle = LifeCycle("life", known.moves)

    def try_all(tx: Transaction) -> None:
        tx.run("CREATE TABLE life (id TEXT PRIMARY KEY, state TEXT NOT NULL, note TEXT NOT NULL)")
        for before, after in product(known.moves, known.moves):
            id = f"{before} to {after}"
            tx.run("INSERT INTO life VALUES (:id, :state, 'old')", id=id, state=before)
            changed = 0
            if cycle.before(after):
                changed = cycle.move(tx, after, "id = :id", columns={"note": "new"}, id=id)
            found = tx.one("SELECT state, note FROM life WHERE id = :id", id=id)
            is_allowed = str(after) in allowed[str(before)]
            assert (changed, found) == ((1, (after, "new")) if is_allowed else (0, (before, "old")))

    store.write(try_all)


def test_a_condition_with_an_alternative_does_not_widen_a_move(store: Database) -> None:
    cycle = LifeCycle("life", cycles()["image"].moves)

    def work(tx: Transaction) -> None:
        tx.run("CREATE TABLE life (id TEXT PRIMARY KEY, state TEXT NOT NULL)")
        tx.run("INSERT INTO life VALUES ('a', 'deleting')")
        ready = next(each for each in cycle.moves if str(each) == "ready")
        assert cycle.move(tx, ready, "id = 'b' OR id = 'a'") == 0

    store.write(work)
