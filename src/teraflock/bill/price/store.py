"""All SQL of the price book. Versions are inserted and never changed."""

from collections.abc import Sequence

import msgspec

from teraflock.bill.price.model import Period, PriceBook, PriceSheet
from teraflock.storage.database import Transaction
from teraflock.storage.table import number


class Version(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    taken_at_us: int
    member: str


def add(tx: Transaction, periods: Sequence[Period], *, text: str, member: str, now_us: int) -> None:
    version = periods[0].version
    tx.run(
        "INSERT INTO price_book (version, taken_at_us, member, text) VALUES (:version, :now, :member, :text)",
        version=version,
        now=now_us,
        member=member,
        text=text,
    )
    tx.run_many(
        "INSERT INTO price_period (version, from_us, until_us, prices)"
        " VALUES (:version, :from_us, :until_us, :prices)",
        [(each.version, each.from_us, each.until_us, msgspec.json.encode(each.prices).decode()) for each in periods],
    )  # fmt: skip


def newest_version(tx: Transaction) -> int:
    return number(tx, "SELECT COALESCE(MAX(version), 0) FROM price_book")


def versions(tx: Transaction) -> list[Version]:
    rows = tx.all("SELECT version, taken_at_us, member FROM price_book ORDER BY version")
    return [Version(version=row[0], taken_at_us=row[1], member=row[2]) for row in rows]


def text_of(tx: Transaction, version: int) -> str | None:
    row = tx.one("SELECT text FROM price_book WHERE version = :version", version=version)
    return str(row[0]) if row else None


def book(tx: Transaction) -> PriceBook:
    rows = tx.all("SELECT version, from_us, until_us, prices FROM price_period ORDER BY version, from_us")
    return PriceBook(
        Period(
            version=row[0],
            from_us=row[1],
            until_us=row[2],
            prices=msgspec.json.decode(row[3], type=PriceSheet),
        )
        for row in rows
    )
