"""Values are stored unchanged, the same on each database, whatever quotes, percent signs and colons they contain."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from teraflock.storage.database import Database, Misuse, Row, Transaction

INSERT = "INSERT INTO thing (id, name, amount) VALUES (:id, :name, :amount)"


def answer(database: Database, sql: str, /, **values: object) -> Row | None:
    with database.read() as tx:
        return tx.one(sql, **values)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "O'Reilly",
            '"quoted"',
            "100%",
            "%s %(name)s",
            ":name",
            "a::b",
            "$1 ?",
            "-- no",
            "/* no */;",
        ),
        *("/* no */;", "Füße", "東京", "🐦\u200d⬛", "\ttab\nline", "\\n", "x" * 100_000),
    ],
)
def test_text_is_stored_unchanged(store: Database, text: str) -> None:
    store.write(lambda tx: tx.run(INSERT, id=1, name=text, amount=None))
    assert answer(store, "SELECT id, name FROM thing WHERE name = :name", name=text) == (1, text)


@pytest.mark.parametrize("number", [0, 1, -1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_64_bit_integers_are_exact(store: Database, number: int) -> None:
    store.write(lambda tx: tx.run(INSERT, id=number, name=None, amount=None))
    assert answer(store, "SELECT id FROM thing WHERE id = :id", id=number) == (number,)


def test_a_number_beyond_64_bits_is_refused(store: Database) -> None:
    with pytest.raises(Misuse):
        store.write(lambda tx: tx.run(INSERT, id=2**63, name=None, amount=None))
    with pytest.raises(Misuse):
        store.write(lambda tx: tx.run_many(INSERT, [(2**63, None, None)]))


@pytest.mark.parametrize("number", [0.1, -1e300, 5e-324, math.inf, 3.0])
def test_floats_are_exact(store: Database, number: float) -> None:
    store.write(lambda tx: tx.run(INSERT, id=1, name=None, amount=number))
    found = answer(store, "SELECT amount FROM thing WHERE amount = :amount", amount=number)
    assert found == (number,)
    assert isinstance(found[0], float)


def test_booleans_are_stored_as_numbers(store: Database) -> None:
    store.write(lambda tx: tx.run(INSERT, id=True, name=None, amount=None))
    store.write(lambda tx: tx.run_many(INSERT, [(False, None, None)]))
    with store.read() as tx:
        rows = tx.all("SELECT id FROM thing ORDER BY id")
    assert rows == [(0,), (1,)]
    assert all(type(row[0]) is int for row in rows)


def test_none_is_null_and_can_disable_a_filter(store: Database) -> None:
    store.write(lambda tx: tx.run_many(INSERT, [(1, None, 0.5), (2, "two", None)]))
    filtered = "SELECT id FROM thing WHERE CAST(:name AS TEXT) IS NULL OR name = :name ORDER BY id"
    with store.read() as tx:
        assert tx.all("SELECT name, amount FROM thing ORDER BY id") == [(None, 0.5), ("two", None)]
        assert tx.all(filtered, name=None) == [(1,), (2,)]
        assert tx.all(filtered, name="two") == [(2,)]


def test_text_values_keep_their_type_in_every_position(store: Database) -> None:
    assert answer(store, "SELECT 1 WHERE :name IS NOT NULL", name="7") == (1,)


def test_special_characters_in_literals_and_comments_are_ignored(store: Database) -> None:
    sql = """
        SELECT 'a :name 100% $1 ? it''s', "name", :name  -- :comment 50% isn't
        FROM thing /* :more '; */ WHERE name = :name
    """
    store.write(lambda tx: tx.run(INSERT, id=1, name="x", amount=None))
    assert answer(store, sql, name="x") == ("a :name 100% $1 ? it's", "x", "x")


def test_missing_and_superfluous_values_are_refused(store: Database) -> None:
    with store.read() as tx, pytest.raises(Misuse):
        tx.one("SELECT id FROM thing WHERE id = :id")
    with store.read() as tx, pytest.raises(Misuse):
        tx.one("SELECT id FROM thing WHERE id = :id", id=1, other=2)


def test_any_value_name_is_allowed(store: Database) -> None:
    assert answer(store, "SELECT CAST(:sql AS TEXT), CAST(:self AS TEXT)", sql="a", self="b") == ("a", "b")


def test_sums_of_integers_are_integers(store: Database) -> None:
    store.write(lambda tx: tx.run_many(INSERT, [(2**53, None, 0.5), (1, None, 0.25)]))
    row = answer(store, "SELECT SUM(id), SUM(amount), COUNT(*), AVG(id + 1) FROM thing WHERE id < 2")
    assert row == (1, 0.25, 1, 2)
    assert answer(store, "SELECT SUM(id) FROM thing") == (2**53 + 1,)
    assert [type(value) for value in row or ()][:3] == [int, float, int]


def test_text_sorts_by_code_point_and_like_is_case_sensitive(store: Database) -> None:
    names = ["Zebra", "_", "apple", "Äpfel", "a_b", "aB", "10", "9", "é", "東", "🐦"]
    store.write(lambda tx: tx.run_many(INSERT, [(i, name, None) for i, name in enumerate(names)]))
    with store.read() as tx:
        assert [row[0] for row in tx.all("SELECT name FROM thing ORDER BY name")] == sorted(names)
        assert tx.all("SELECT name FROM thing WHERE name LIKE 'z%'") == []
        assert tx.all("SELECT name FROM thing WHERE name LIKE :p ESCAPE '!'", p="a!_%") == [("a_b",)]


def test_run_returns_the_number_of_changed_rows(store: Database) -> None:
    def work(tx: Transaction) -> list[int]:
        return [
            tx.run_many(INSERT, [(i, None, None) for i in range(10)]),
            tx.run("UPDATE thing SET name = 'x' WHERE id < :id", id=4),
            tx.run("UPDATE thing SET name = 'x' WHERE id > 100"),
            tx.run("INSERT INTO thing (id) VALUES (3) ON CONFLICT (id) DO NOTHING"),
            tx.run(
                "WITH low AS (SELECT id FROM thing WHERE id < 2)"
                " DELETE FROM thing WHERE id IN (SELECT id FROM low)"
            ),
            tx.run("CREATE TABLE other (id BIGINT)"),
            tx.run("DELETE FROM thing"),
        ]

    assert store.write(work) == [10, 4, 0, 0, 2, 0, 8]


def test_statements_with_returning_return_rows(store: Database) -> None:
    sql = "INSERT INTO thing (id, name) VALUES (:id, :name) RETURNING id, name"
    assert store.write(lambda tx: tx.one(sql, id=1, name="a")) == (1, "a")
    assert answer(store, "SELECT name FROM thing WHERE id = 1") == ("a",)


UPSERT = INSERT + " ON CONFLICT (id) DO UPDATE SET name = excluded.name"
TWICE = "INSERT INTO thing (name, id, amount) VALUES (:name, :id, :id)"


@pytest.mark.parametrize("sql", [INSERT, UPSERT])
def test_many_rows_by_name_or_in_order(store: Database, sql: str) -> None:
    def work(tx: Transaction) -> list[int]:
        return [
            tx.run_many(sql, ((i, f"tab\t{i}\\", 0.5) for i in range(3000))),
            tx.run_many(sql, ({"name": None, "amount": 1.5, "id": i} for i in range(3000, 3003))),
            tx.run_many(sql, []),
            tx.run_many(sql, iter(())),
        ]

    assert store.write(work) == [3000, 3, 0, 0]
    assert answer(store, "SELECT COUNT(*), MAX(id) FROM thing") == (3003, 3002)
    assert answer(store, "SELECT id, name, amount FROM thing WHERE id = 7") == (7, "tab\t7\\", 0.5)
    assert answer(store, "SELECT id, name, amount FROM thing WHERE id = 3001") == (3001, None, 1.5)


def test_many_rows_with_a_name_that_occurs_twice(store: Database) -> None:
    store.write(lambda tx: tx.run_many(TWICE, [("a", 1)]))
    store.write(lambda tx: tx.run_many(TWICE, [{"id": 2, "name": "b"}]))
    store.write(lambda tx: tx.run_many(TWICE + " ON CONFLICT DO NOTHING", [("c", 3)]))
    with store.read() as tx:
        rows = tx.all("SELECT id, name, amount FROM thing ORDER BY id")
    assert rows == [(1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0)]


@pytest.mark.parametrize("row", [(1,), (1, "a", 0.5, "more"), {"id": 1}])
def test_a_row_of_the_wrong_form_is_refused_and_nothing_is_stored(store: Database, row: Any) -> None:
    good: Any = (9, "good", 1.0) if isinstance(row, tuple) else {"id": 9, "name": "good", "amount": 1.0}
    with pytest.raises(Misuse):
        store.write(lambda tx: tx.run_many(INSERT, [good, row]))
    assert answer(store, "SELECT COUNT(*) FROM thing") == (0,)


def test_an_error_while_producing_rows_is_raised_unchanged(store: Database) -> None:
    def rows() -> Iterator[Row]:
        yield 1, "a", 0.5
        raise LookupError("line 2")

    with pytest.raises(LookupError, match="line 2"):
        store.write(lambda tx: tx.run_many(INSERT, rows()))
    assert answer(store, "SELECT COUNT(*) FROM thing") == (0,)


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


def test_each_streams_rows_in_bounded_memory(store: Database) -> None:
    with store.read() as tx:
        rows = tx.each(ENDLESS)  # would never return if it read all rows
        assert [next(rows) for _ in range(5000)][-1] == (5000,)


def test_streams_and_statements_can_be_interleaved(store: Database) -> None:
    store.write(lambda tx: tx.run_many(INSERT, [(i, None, None) for i in range(6000)]))

    def work(tx: Transaction) -> int:
        pairs = zip(
            tx.each("SELECT id FROM thing WHERE id >= :low ORDER BY id", low=10),
            tx.each("SELECT id FROM thing ORDER BY id DESC"),
            strict=False,
        )
        assert next(pairs) == ((10,), (5999,))
        assert tx.one("SELECT COUNT(*) FROM thing") == (6000,)
        return sum(1 for _ in pairs)

    with store.read() as tx:
        assert work(tx) == 5989
    assert store.write(work) == 5989
