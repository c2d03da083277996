"""Where things are kept: a `Database` on SQLite or PostgreSQL, with one SQL text for both.

    database.py      the protocols, and the errors both engines share
    open.py          from an address to a database that is ready
    sqlite.py        SQLite: readers, and one writer with group commit (group_commit.py)
    memory.py        SQLite without a file
    postgres.py      PostgreSQL; the only module that imports psycopg
    migrate.py       brings the tables up to date; migrations/ has them
    events.py        the event rows

Nothing here knows what the rows mean. All SQL of a noun stands in its own `store.py`.
"""
