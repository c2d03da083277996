"""Failures that only PostgreSQL has: an unreachable server, a lost connection, endless conflicts."""

import threading
from collections.abc import Iterator

import pytest
from tests.postgres_server import PostgresServer

from teraflock.base.errors import BadInput, Refused, StorageFailed, TeraflockError, Unavailable
from teraflock.storage.database import Database, Misuse, Transaction

psycopg = pytest.importorskip("psycopg")

from teraflock.storage import postgres, postgres_statements  # noqa: E402
from teraflock.storage.postgres import ATTEMPTS_MAX, open_postgres  # noqa: E402
from teraflock.storage.postgres_statements import Statements  # noqa: E402
from teraflock.storage.postgres_transaction import copy_into  # noqa: E402

HANG_UP = "SELECT pg_terminate_backend(pg_backend_pid())"


@pytest.fixture
def database(postgres_address: str) -> Iterator[Database]:
    database = open_postgres(postgres_address)
    database.write(lambda tx: tx.run("CREATE TABLE thing (id BIGINT PRIMARY KEY)"))
    yield database
    database.close()


def count(database: Database) -> int:
    with database.read() as tx:
        row = tx.one("SELECT COUNT(*) FROM thing")
        return int(row[0]) if row else -1


def hang_up_all(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND application_name = current_setting('application_name')"
        )


def test_connections_that_broke_while_idle_are_skipped(database: Database, postgres_address: str) -> None:
    hang_up_all(postgres_address)
    assert count(database) == 0
    hang_up_all(postgres_address)
    database.write(lambda tx: tx.run("INSERT INTO thing (id) VALUES (1)"))
    assert count(database) == 1


def test_a_connection_lost_inside_a_work_is_retried(database: Database) -> None:
    attempts = []

    def work(tx: Transaction) -> None:
        attempts.append(1)
        tx.run("INSERT INTO thing (id) VALUES (1)")
        if len(attempts) == 1:
            tx.run(HANG_UP)

    database.write(work)
    assert len(attempts) == 2
    assert count(database) == 1


def test_a_connection_lost_during_a_stream_is_an_error(database: Database) -> None:
    def breaks() -> None:
        with database.read() as tx:
            next(tx.each("SELECT generate_series(1, 100000)"))
            tx.run(HANG_UP)

    with pytest.raises(Unavailable, match="cannot be reached"):
        breaks()
    assert count(database) == 0


def test_a_connection_that_always_breaks_is_an_error(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "ATTEMPTS_MAX", 3)
    attempts = []

    def work(tx: Transaction) -> None:
        attempts.append(1)
        tx.run(HANG_UP)

    with pytest.raises(Unavailable, match="cannot be reached"):
        database.write(work)
    assert len(attempts) == 3
    assert count(database) == 0


def test_a_connection_lost_during_the_commit_has_an_unknown_result(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = Statements.command

    def breaks(statements: Statements, sql: bytes) -> None:
        if sql == b"COMMIT":
            statements.rows(HANG_UP.encode(), ())
        command(statements, sql)

    attempts: list[Transaction] = []
    monkeypatch.setattr(Statements, "command", breaks)
    with pytest.raises(StorageFailed, match="was lost during a commit") as lost:
        database.write(attempts.append)
    assert "Check whether" in lost.value.hint
    assert len(attempts) == 1


def test_conflicts_are_retried_up_to_a_limit(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("teraflock.storage.postgres.time.sleep", pauses.append)
    attempts = []

    def collides(tx: Transaction) -> None:
        attempts.append(1)
        tx.run("DO 'BEGIN RAISE SQLSTATE ''40001''; END'")

    with pytest.raises(Unavailable, match="too busy"):
        database.write(collides)
    assert len(attempts) == ATTEMPTS_MAX == len(pauses) + 1
    assert all(0 <= pause <= postgres.PAUSE_SECONDS_MAX for pause in pauses)


def test_write_one_refuses_a_second_statement(database: Database) -> None:
    def twice(tx: Transaction) -> None:
        tx.run("INSERT INTO thing (id) VALUES (1)")
        tx.run("INSERT INTO thing (id) VALUES (2)")

    with pytest.raises(Misuse, match="one statement"):
        database.write_one(twice)
    with pytest.raises(Misuse, match="one statement"):
        database.write_one(lambda tx: tx.run_many("INSERT INTO thing (id) VALUES (:id)", [(3,), (4,)]))


def test_write_one_skips_a_connection_that_broke_while_idle(
    database: Database, postgres_address: str
) -> None:
    hang_up_all(postgres_address)
    assert database.write_one(lambda tx: tx.run("INSERT INTO thing (id) VALUES (1)")) == 1
    assert count(database) == 1


def test_prepared_statements_follow_a_change_of_their_table(database: Database) -> None:
    def work(tx: Transaction) -> None:
        tx.run("INSERT INTO thing (id) VALUES (1)")
        assert [tx.one("SELECT * FROM thing") for _ in range(3)] == [(1,)] * 3
        tx.run("ALTER TABLE thing ADD COLUMN name TEXT DEFAULT 'a'")
        assert [tx.one("SELECT * FROM thing") for _ in range(3)] == [(1, "a")] * 3

    database.write(work)


def test_a_connection_recovers_when_another_one_changes_a_table(database: Database) -> None:
    with database.read() as tx:
        assert [tx.one("SELECT * FROM thing") for _ in range(3)] == [None] * 3
        other = threading.Thread(
            target=database.write, args=[lambda tx: tx.run("ALTER TABLE thing ADD COLUMN name TEXT")]
        )
        other.start()  # waits for the read
    other.join()
    failures = 0
    for _ in range(4):
        try:
            with database.read() as tx:
                tx.one("SELECT * FROM thing")
        except Misuse:
            failures += 1
    assert failures <= 1


def test_the_oldest_prepared_statements_are_removed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_statements, "STATEMENTS_PREPARED_MAX", 3)
    with database.read() as tx:
        for n in (*range(10), *range(10)):
            assert [tx.one(f"SELECT {n}, :n", n=n) for _ in range(3)] == [(n, n)] * 3
        assert tx.one("SELECT COUNT(*) FROM pg_prepared_statements") == (3,)


def test_no_free_connection_is_an_error(postgres_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(postgres, "CONNECTION_SECONDS_MAX", 1)
    database = open_postgres(postgres_address)
    with database.read(), pytest.raises(Unavailable, match="are in use"), database.read():
        pass
    database.close()


def test_a_commit_is_durable_whatever_the_server_default(database: Database) -> None:
    with database.read() as tx:
        assert tx.one("SHOW synchronous_commit") == ("on",)


@pytest.mark.parametrize(
    ("sql", "copy"),
    [
        ("INSERT INTO t (a, b) VALUES (:a, :b)", b"COPY t (a, b) FROM STDIN"),
        ("\n insert into t(a)\nvalues ( :a )\n", b"COPY t (a) FROM STDIN"),
        ("INSERT INTO t (a, b) VALUES (:a, 1)", None),
        ("INSERT INTO t (a) VALUES (:a + 1)", None),
        ("INSERT INTO t (a) VALUES (:a) ON CONFLICT DO NOTHING", None),
        ("INSERT INTO t VALUES (:a)", None),
        ("UPDATE t SET a = :a", None),
    ],
)
def test_plain_inserts_are_copied(sql: str, copy: bytes | None) -> None:
    assert copy_into(sql) == copy


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:secret@127.0.0.1:1/name",
        "postgresql://me:secret@/name?host=/nowhere",
    ],
)
def test_an_unreachable_server_is_an_error_without_the_password(address: str) -> None:
    with pytest.raises(Unavailable, match="cannot be reached") as away:
        open_postgres(address)
    assert "secret" not in away.value.sentence + away.value.hint


def test_an_invalid_address_is_not_repeated() -> None:
    with pytest.raises(BadInput) as bad:
        open_postgres("postgresql://me:secret@host:port/name?nonsense")
    assert "secret" not in bad.value.sentence + bad.value.hint
    assert bad.value.__suppress_context__


@pytest.mark.parametrize(
    "made_with", ["ENCODING 'SQL_ASCII' LOCALE 'C'", "LOCALE_PROVIDER icu ICU_LOCALE 'en'"]
)
def test_a_server_with_another_sort_order_is_refused(postgres_server: PostgresServer, made_with: str) -> None:
    with psycopg.connect(postgres_server.address(), autocommit=True) as connection:
        try:
            connection.execute(f"CREATE DATABASE other TEMPLATE template0 {made_with}")
        except psycopg.Error as error:
            pytest.skip(f"this server cannot create such databases: {error}")
        try:
            with pytest.raises(Refused, match="must sort text by code point"):
                open_postgres(postgres_server.address(database="other"))
        finally:
            connection.execute("DROP DATABASE other")


def test_a_user_without_permissions_is_an_error(database: Database) -> None:
    def work(tx: Transaction) -> None:
        schema = tx.one("SELECT current_schema()")
        assert schema
        tx.run(f"GRANT USAGE ON SCHEMA {schema[0]} TO pg_monitor")
        tx.run("SET LOCAL ROLE pg_monitor")
        tx.run("DELETE FROM thing")

    with pytest.raises(TeraflockError, match="may not read or write"):
        database.write(work)


def test_where_contains_no_secrets() -> None:
    assert postgres._where("postgresql://me:secret@db.example:99/name") == "postgresql://db.example:99/name"
    assert postgres._where("host=/run/db dbname=name password=secret") == "postgresql:///run/db:5432/name"


def test_a_statement_stays_prepared_after_reads_and_failed_writes(database: Database) -> None:
    def fail(tx: Transaction) -> None:
        tx.run("INSERT INTO thing (id) VALUES (:id)", id=1)
        raise BadInput("no")

    for _ in range(40):  # each connection of the pool prepares a statement at its fifth use
        count(database)
    with pytest.raises(BadInput):
        database.write(fail)
    count(database)
    with database.read() as tx:
        kept = tx.all(
            "SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%COUNT(*) FROM thing%'"
        )
    assert len(kept) == 1
    assert count(database) == 0
