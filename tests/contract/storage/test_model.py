"""Any sequence of works, some of which fail, gives the same result as a plain dict."""

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teraflock.storage.database import ConstraintBroken, Database, Transaction

KEYS = st.integers(0, 5)
TEXTS = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, TEXTS),
    st.tuples(st.just("insert"), KEYS, TEXTS),  # fails if the key exists
    st.tuples(st.just("delete"), KEYS, st.none()),
    st.tuples(st.just("raise"), KEYS, st.none()),
)
WORKS = st.lists(st.lists(STEPS, max_size=6), max_size=8)
Step = tuple[str, int, str | None]


class OnPurpose(Exception):
    pass


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(works=WORKS)
def test_a_database_behaves_like_a_dict_with_rollback(store: Database, works: list[list[Step]]) -> None:
    store.write(lambda tx: tx.run("DELETE FROM thing"))
    model: dict[int, str | None] = {}
    for steps in works:
        expected = _after(model, steps)
        if expected is None:
            with pytest.raises((OnPurpose, ConstraintBroken)):
                store.write(partial(_apply, steps=steps))
        else:
            store.write(partial(_apply, steps=steps))
            model = expected
        with store.read() as tx:
            assert dict(tx.all("SELECT id, name FROM thing")) == model


def _after(model: dict[int, str | None], steps: list[Step]) -> dict[int, str | None] | None:
    """The model after the steps, or None if they fail."""
    changed = dict(model)
    for act, key, text in steps:
        if act == "raise" or (act == "insert" and key in changed):
            return None
        if act == "delete":
            changed.pop(key, None)
        else:
            changed[key] = text
    return changed


def _apply(tx: Transaction, steps: list[Step]) -> None:
    for act, key, text in steps:
        if act == "raise":
            raise OnPurpose
        if act == "put":
            tx.run(
                "INSERT INTO thing (id, name) VALUES (:id, :name)"
                " ON CONFLICT (id) DO UPDATE SET name = excluded.name",
                id=key,
                name=text,
            )
        elif act == "insert":
            tx.run_many("INSERT INTO thing (id, name) VALUES (:id, :name)", [(key, text)])
        else:
            tx.run("DELETE FROM thing WHERE id = :id", id=key)
