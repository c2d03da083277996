"""Storage: a `Database` on SQLite or PostgreSQL, with the same SQL for both.

    database.py      the protocols, and the errors that both engines share
    open.py          opens the database at an address
    sqlite.py        SQLite: readers, and one writer with group commit (group_commit.py)
    memory.py        SQLite without a file
    postgres.py      PostgreSQL; with its helpers `postgres_*.py`, the only modules that import psycopg
    migrate.py       applies the migrations in migrations/
    events.py        the event rows

Nothing here knows what the rows mean. The SQL of each noun is in its own `store.py`.
"""
