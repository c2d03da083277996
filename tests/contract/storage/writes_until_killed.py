"""A program that writes batches of rows from several threads, and prints which batches are committed.

    python writes_until_killed.py ADDRESS FIRST_BATCH

`test_kill.py` kills it and then checks what it left.
"""

import itertools
import os
import sys
import threading

from teraflock.base.clock import SystemClock
from teraflock.storage.database import Transaction
from teraflock.storage.open import open_database

ROWS_PER_BATCH = 20
THREADS = 4


def main(address: str, first_batch: int) -> None:
    database = open_database(address, SystemClock())
    batches = itertools.count(first_batch)

    def write_on() -> None:
        for batch in batches:

            def work(tx: Transaction, batch: int = batch) -> None:
                for row in range(ROWS_PER_BATCH):
                    tx.run("INSERT INTO kept (batch, row) VALUES (:batch, :row)", batch=batch, row=row)

            database.write(work)
            os.write(1, f"{batch}\n".encode())

    for _ in range(THREADS):
        threading.Thread(target=write_on).start()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
