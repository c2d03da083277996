"""A database from before places and dates is updated: its counts, shapes and outdated prices are those of an import."""

import shutil
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace
from tests.unit.offer.random_offers import ON, RATES, random_offers

from teraflock.base.clock import SystemClock
from teraflock.catalog.places import place_filter
from teraflock.offer.model import Query
from teraflock.offer.question import store as question_store
from teraflock.offer.rules import matches
from teraflock.offer.shape.store import update_shapes
from teraflock.offer.source import store as source_store
from teraflock.offer.store import COLUMNS, every, row_from
from teraflock.storage.database import Transaction
from teraflock.storage.migrate import MIGRATIONS, migrate
from teraflock.storage.open import open_as_it_is

NAME = next(Path(MIGRATIONS).glob("*_places.sql")).name
OLD_COLUMNS = [name for name in COLUMNS if name != "outdated"]


def test_an_old_catalog_is_updated(database_address: str, tmp_path: Path) -> None:
    database = open_as_it_is(database_address)
    folder = tmp_path / "before"
    folder.mkdir()
    for file in sorted(Path(MIGRATIONS).glob("*.sql")):
        if file.name < NAME:
            shutil.copy(file, folder)
    migrate(database, SystemClock(), folder=str(folder))
    once = random_offers(Random(5), 80)
    offers = [*once, *(replace(offer, id=offer.id + 10**9, as_of="2026-10-10") for offer in once[::2])]

    def old(tx: Transaction) -> None:
        values = ", ".join(f":{name}" for name in OLD_COLUMNS)
        rows = [row_from(offer, offer.id, offer.since, 1)[: len(OLD_COLUMNS)] for offer in offers]
        for row in rows:
            named: dict[str, Any] = dict(zip(OLD_COLUMNS, row, strict=True))
            named["place"] = f"{named['region']} {named['zone']}".strip().casefold()
            tx.run(f"INSERT INTO offer ({', '.join(OLD_COLUMNS)}) VALUES ({values})", **named)

    database.write(old)
    migrate(database, SystemClock())
    with database.read() as tx:
        updated = {offer.id: offer for offer in every(tx)}
        query = Query(places=place_filter(("US",), (), ()), slices=True, refused=True)
        found = question_store.search(tx, query, RATES, ON)
        assert {offer.id for offer in found} == {
            offer.id for offer in updated.values() if matches(offer, query, RATES, ON)
        }
        before = counted(tx)

    def again(tx: Transaction) -> None:
        source_store.mark_outdated(tx)
        for name in ("shipped", "other"):
            source_store.update_counts(tx, name)
            update_shapes(tx, name)

    database.write(again)
    with database.read() as tx:
        assert {offer.id: offer for offer in every(tx)} == updated
        assert counted(tx) == before
    assert any(offer.outdated for offer in updated.values())
    database.close()


def counted(tx: Transaction) -> list[Any]:
    return [sorted(tx.all(f"SELECT * FROM {table}"), key=repr) for table in ("offer_count", "offer_shape")]
