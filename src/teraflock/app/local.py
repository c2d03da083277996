"""What a command needs on this machine: the user's database, and the exchange rates.

Reading always works: if the folder is not writable and still empty, the shipped offers are loaded into memory. Writing
needs a writable folder, and raises an error without one.
"""

import csv
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from teraflock import base
from teraflock.app.home import DATABASE_NAME, RATES_NAME, home
from teraflock.base.clock import Clock, SystemClock
from teraflock.base.errors import BadInput, StorageFailed
from teraflock.base.exchange import Rates, read_rates

if TYPE_CHECKING:
    from teraflock.offer.service import OfferService
    from teraflock.storage.database import Database

SHIPPED_RATES: Final = f"{os.path.dirname(base.__file__)}/data/rates.csv"  # noqa: PTH120 -- see home.py


class Local:
    """Opens the database on first use, and closes it with the block."""

    def __init__(self, clock: Clock | None = None, folder: str = "") -> None:
        """`folder` is the user's folder; left out: the one that the environment names."""
        self.home = folder or home()
        self.clock: Clock = clock or SystemClock()
        self._database: Database | None = None
        self._unwritable: StorageFailed | None = None
        """Why the database is in memory, if it is."""
        self._rates: Rates | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._database:
            self._database.close()

    @property
    def rates(self) -> Rates:
        """The user's exchange rates, plus the shipped ones for all other currencies."""
        if self._rates is None:
            self._rates = load_rates(self.rates_path)
            if self.rates_path != SHIPPED_RATES:
                self._rates = filled_up(self._rates)
        return self._rates

    @property
    def rates_path(self) -> str:
        own = f"{self.home}/{RATES_NAME}"
        return own if _is_there(own) else SHIPPED_RATES

    def has_database(self) -> bool:
        """Whether the user's database exists. Opening it creates it."""
        return _is_there(f"{self.home}/{DATABASE_NAME}")

    def offers(self) -> "OfferService":
        from teraflock.offer.service import OfferService

        return OfferService(self.database(), self.rates, self.clock)

    def database(self, *, to_write: bool = False) -> "Database":
        """The user's database, with the shipped offers in it."""
        if self._database is None:
            self._database = self._open(to_write)
        if to_write and self._unwritable:
            raise self._unwritable
        return self._database

    def _open(self, to_write: bool) -> "Database":
        from teraflock.offer.imports import ensure_shipped
        from teraflock.storage.open import open_database

        def opened(address: str) -> "Database":
            database = open_database(address, self.clock)
            try:
                ensure_shipped(database, self.rates, self.clock)
            except BaseException:
                database.close()
                raise
            return database

        path = f"{self.home}/{DATABASE_NAME}"
        try:
            with suppress(FileExistsError):
                os.makedirs(self.home, exist_ok=True)  # noqa: PTH103 -- see home.py
            return opened(path)
        except (OSError, StorageFailed) as error:
            self._unwritable = _cannot_write(self.home, error)
            if to_write or _is_there(path):
                raise self._unwritable from None
        return opened(":memory:")


def _is_there(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 -- `Path.exists` raises if a parent folder is not accessible


def _cannot_write(folder: str, error: Exception) -> StorageFailed:
    if isinstance(error, StorageFailed):
        return error
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return StorageFailed(
        f"The folder `{folder}` is not writable: {reason}",
        hint="Set `TERA_HOME` to a writable folder",
    )


def load_rates(path: str) -> Rates:
    name = os.path.basename(path)  # noqa: PTH119 -- see home.py
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # noqa: PTH123
            return read_rates(file, name=f"`{name}`")
    except (UnicodeDecodeError, csv.Error):
        raise BadInput(f"`{name}` is not a CSV file in UTF-8", hint=f"Check the file at {path}") from None


def filled_up(own: Rates) -> Rates:
    """Add the shipped rates of other currencies, so that offers in them stay visible."""
    shipped = load_rates(SHIPPED_RATES).rows()
    return Rates([*own.rows(), *(rate for rate in shipped if not own.knows(rate.currency))])
