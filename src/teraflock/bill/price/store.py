"""All SQL of the price book. Versions are inserted and never changed."""

from collections.abc import Sequence
from typing import Final

import msgspec

from teraflock.bill.price.model import Period, PriceBook, PriceSheet
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, add_row, number

_PERIOD: Final = Table("price_period", Period, leave_out=("prices",))


class Version(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    taken_at_us: int
    member: str


def add(tx: Transaction, periods: Sequence[Period], *, text: str, member: str, now_us: int) -> None:
    add_row(tx, "price_book", version=periods[0].version, taken_at_us=now_us, member=member, text=text)
    for each in periods:
        _PERIOD.add(tx, each, prices=msgspec.json.encode(each.prices).decode())


def newest_version(tx: Transaction) -> int:
    return number(tx, "SELECT COALESCE(MAX(version), 0) FROM price_book")


def versions(tx: Transaction) -> list[Version]:
    rows = tx.all("SELECT version, taken_at_us, member FROM price_book ORDER BY version")
    return [Version(version=row[0], taken_at_us=row[1], member=row[2]) for row in rows]


def text_of(tx: Transaction, version: int) -> str | None:
    row = tx.one("SELECT text FROM price_book WHERE version = :version", version=version)
    return str(row[0]) if row else None


def book(tx: Transaction) -> PriceBook:
    rows = tx.all(f"SELECT {_PERIOD.names}, prices FROM price_period ORDER BY version, from_us")
    return PriceBook(
        _PERIOD.value(row[:-1], prices=msgspec.json.decode(row[-1], type=PriceSheet)) for row in rows
    )
