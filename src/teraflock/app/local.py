"""What a command needs on this machine: the database in the user's folder, and the exchange rates.

Reading works in every case: where the folder cannot be written and holds nothing yet, the shipped offers are put
into memory. Writing needs the folder, and says so.
"""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from teraflock.app.home import DATABASE_NAME, RATES_NAME, home
from teraflock.base.clock import Clock, SystemClock
from teraflock.base.errors import StorageFailed, unknown_name
from teraflock.base.exchange import Rates, read_rates

if TYPE_CHECKING:
    from teraflock.offer.service import OfferService
    from teraflock.storage.database import Database

SHIPPED_RATES = Path(__file__).parent.parent / "base" / "data" / "rates.csv"


class Local:
    """Opened when first used, closed with the block."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.home = home()
        self.clock: Clock = clock or SystemClock()
        self._database: Database | None = None
        self._rates: Rates | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._database:
            self._database.close()

    @property
    def rates(self) -> Rates:
        """The user's table of exchange rates if there is one, else the shipped one."""
        if self._rates is None:
            self._rates = load_rates(self.rates_path)
        return self._rates

    @property
    def rates_path(self) -> Path:
        own = self.home / RATES_NAME
        return own if own.exists() else SHIPPED_RATES

    def currency(self, code: str) -> str:
        """A currency for which there is a rate."""
        if not self.rates.knows(code.upper()):
            raise unknown_name("currency", code, self.rates.currencies(), see="`tera rates` lists them")
        return code.upper()

    def offers(self) -> "OfferService":
        from teraflock.offer.service import OfferService

        return OfferService(self.database(), self.rates, self.clock)

    def database(self, *, to_write: bool = False) -> "Database":
        """The database of this user, with the shipped offers in it."""
        if self._database is None:
            self._database = self._open(to_write)
        return self._database

    def _open(self, to_write: bool) -> "Database":
        from teraflock.offer.imports import ensure_shipped
        from teraflock.storage.open import open_database

        path = self.home / DATABASE_NAME
        try:
            with suppress(FileExistsError):
                self.home.mkdir(parents=True, exist_ok=True)
            database = open_database(str(path), self.clock)
            ensure_shipped(database, self.rates, self.clock)
            return database
        except (OSError, StorageFailed) as error:
            if to_write or path.exists():
                raise _cannot_write(self.home, error) from None
        database = open_database(":memory:", self.clock)
        ensure_shipped(database, self.rates, self.clock)
        return database


def _cannot_write(folder: Path, error: Exception) -> StorageFailed:
    if isinstance(error, StorageFailed):
        return error
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return StorageFailed(
        f"The folder `{folder}` cannot be written: {reason}",
        hint="Set `TERA_HOME` to a folder that you may write to",
    )


def load_rates(path: Path) -> Rates:
    with path.open(encoding="utf-8", newline="") as file:
        return read_rates(file, name=f"`{path.name}`")
