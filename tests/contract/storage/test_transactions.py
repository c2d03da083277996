"""Guarantees of a transaction: all or nothing, reads change nothing, and both databases raise the same errors."""

from collections.abc import Iterator

import pytest

from teraflock.base.errors import StorageFailed
from teraflock.storage.database import ConstraintBroken, Database, MissingTable, Misuse, Row, Transaction


def add(tx: Transaction, id: int, name: str | None = None) -> None:
    tx.run("INSERT INTO thing (id, name) VALUES (:id, :name)", id=id, name=name)


def ids(database: Database) -> list[int]:
    with database.read() as tx:
        return [row[0] for row in tx.all("SELECT id FROM thing ORDER BY id")]


def test_a_write_is_stored_and_returns_the_result_of_its_work(store: Database) -> None:
    def work(tx: Transaction) -> str:
        add(tx, 1)
        add(tx, 2)
        return "done"

    assert store.write(work) == "done"
    assert ids(store) == [1, 2]


def test_a_work_sees_its_own_changes(store: Database) -> None:
    def work(tx: Transaction) -> Row | None:
        add(tx, 7, "seven")
        return tx.one("SELECT name FROM thing WHERE id = :id", id=7)

    assert store.write(work) == ("seven",)


@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_work_that_raises_is_rolled_back(store: Database, raised: type[BaseException]) -> None:
    def work(tx: Transaction) -> None:
        add(tx, 1)
        raise raised("on purpose")

    with pytest.raises(raised, match="on purpose"):
        store.write(work)
    assert ids(store) == []
    store.write(lambda tx: add(tx, 2))
    assert ids(store) == [2]


def test_tables_created_by_a_work_that_raises_are_rolled_back(store: Database) -> None:
    def work(tx: Transaction) -> None:
        tx.run("CREATE TABLE other (id BIGINT PRIMARY KEY)")
        raise ValueError

    with pytest.raises(ValueError):
        store.write(work)
    with store.read() as tx, pytest.raises(MissingTable):
        tx.all("SELECT id FROM other")


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO thing (id) VALUES (1)",
        "UPDATE thing SET name = 'x'",
        "DELETE FROM thing",
        "CREATE TABLE other (id BIGINT)",
    ],
)
def test_a_read_cannot_change_anything(store: Database, sql: str) -> None:
    store.write(lambda tx: add(tx, 5, "five"))
    with store.read() as tx, pytest.raises(Misuse, match="a read cannot change anything"):
        tx.run(sql)
    with store.read() as tx:
        assert tx.all("SELECT id, name FROM thing") == [(5, "five")]


def test_a_swallowed_error_still_rolls_back_the_work(store: Database) -> None:
    def work(tx: Transaction) -> str:
        add(tx, 1)
        with pytest.raises(ConstraintBroken):
            add(tx, 1)
        with pytest.raises(Misuse, match="earlier statement"):
            add(tx, 2)
        return "as if nothing had happened"

    with pytest.raises(ConstraintBroken):
        store.write(work)
    assert ids(store) == []


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO child (id, parent) VALUES (1, 99)",  # no such parent
        "INSERT INTO child (id, parent) VALUES (1, NULL)",
        "INSERT INTO child (id, parent) VALUES (0, 5)",  # below its range
    ],
)
def test_every_kind_of_constraint_raises_the_same_error(store: Database, sql: str) -> None:
    store.write(
        lambda tx: tx.run(
            "CREATE TABLE child (id BIGINT PRIMARY KEY CHECK (id > 0),"
            " parent BIGINT NOT NULL REFERENCES thing (id))"
        )
    )
    store.write(lambda tx: add(tx, 5))
    with pytest.raises(ConstraintBroken) as raised:
        store.write(lambda tx: tx.run(sql))
    assert isinstance(raised.value, StorageFailed)
    assert "child" not in raised.value.sentence


def test_invalid_sql_never_appears_in_a_message(store: Database) -> None:
    with store.read() as tx, pytest.raises(Misuse) as raised:
        tx.all("SELEC secret FROM thing")
    assert "SELEC" not in str(raised.value)
    assert "SELEC" in str(raised.value.__cause__)


def test_several_statements_in_one_call_are_refused(store: Database) -> None:
    with pytest.raises(Misuse):
        store.write(lambda tx: tx.run("DELETE FROM thing; DROP TABLE thing"))
    assert ids(store) == []


def test_a_missing_table_has_its_own_error(store: Database) -> None:
    with store.read() as tx, pytest.raises(MissingTable):
        tx.one("SELECT 1 FROM nowhere")


def test_a_transaction_ends_with_its_block(store: Database) -> None:
    with store.read() as tx:
        pass
    with pytest.raises(Misuse, match="has ended"):
        tx.all("SELECT 1")
    kept = store.write(lambda tx: tx)
    with pytest.raises(Misuse, match="has ended"):
        kept.run("DELETE FROM thing")


def test_a_stream_that_outlives_its_database_ends_without_a_word(store: Database) -> None:
    store.write(lambda tx: tx.run_many("INSERT INTO thing (id) VALUES (:id)", [(i,) for i in range(5000)]))
    with store.read() as tx:
        rows = tx.each("SELECT id FROM thing")
        next(rows)
    store.close()
    del rows  # pytest turns an error in its clean-up into a failure


def test_a_stream_ends_with_its_transaction(store: Database) -> None:
    store.write(lambda tx: tx.run_many("INSERT INTO thing (id) VALUES (:id)", [(i,) for i in range(5000)]))

    def work(tx: Transaction) -> Iterator[Row]:
        rows = tx.each("SELECT id FROM thing")
        next(rows)
        return rows

    with store.read() as tx:
        of_read = work(tx)
    of_write = store.write(work)
    store.write(lambda tx: tx.run("DROP TABLE thing"))  # an open stream would prevent it
    for rows in (of_read, of_write):
        with pytest.raises(Misuse, match="has ended"):
            list(rows)


def test_a_transaction_inside_a_work_is_refused_without_waiting(store: Database) -> None:
    def writes(tx: Transaction) -> None:
        store.write(lambda inner: add(inner, 1))

    def reads(tx: Transaction) -> None:
        with store.read():
            pass

    for work in (writes, reads):
        with pytest.raises(Misuse, match="use the transaction of the work"):
            store.write(work)
    assert ids(store) == []


def test_reads_can_be_nested(store: Database) -> None:
    store.write(lambda tx: add(tx, 1))
    with store.read() as outer, store.read() as inner:
        assert outer.all("SELECT id FROM thing") == inner.all("SELECT id FROM thing") == [(1,)]


def test_an_exception_in_a_read_leaves_the_database_usable(store: Database) -> None:
    def reads_and_raises() -> None:
        with store.read() as tx:
            tx.all("SELECT id FROM thing")
            raise ValueError

    with pytest.raises(ValueError):
        reads_and_raises()
    store.write(lambda tx: add(tx, 1))
    assert ids(store) == [1]


def test_a_closed_database_refuses_use_and_can_be_closed_again(store: Database) -> None:
    store.close()
    store.close()
    with pytest.raises(Misuse, match="closed"), store.read():
        pass
    with pytest.raises(Misuse, match="closed"):
        store.write(lambda tx: None)
