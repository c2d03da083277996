"""Generated offers: repeatable, all different, and similar to real catalogs."""

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from bench import generate

from teraflock.base.clock import SystemClock
from teraflock.base.exchange import Rates
from teraflock.catalog.names import find_kinds
from teraflock.offer import store
from teraflock.offer.imports import import_offers
from teraflock.offer.tally import Origin
from teraflock.storage.open import open_database

COUNT = 5_000


def test_the_same_seed_gives_the_same_offers() -> None:
    assert list(generate.offers(100)) == list(generate.offers(100))
    assert list(generate.offers(100)) != list(generate.offers(100, seed=1))


def test_offers_differ_and_look_like_a_catalog() -> None:
    offers = list(generate.offers(COUNT))
    assert len({offer.id for offer in offers}) == COUNT
    places = {(o.provider, o.region, o.zone, o.instance_type, o.mode) for o in offers}
    assert len(places) == COUNT
    assert len({offer.provider for offer in offers}) == len(generate.PROVIDERS) == 20
    assert len({offer.gpu for offer in offers}) == 60
    assert len({offer.instance_type for offer in offers}) == generate.TYPES
    standings = Counter(offer.standing for offer in offers)
    assert 0.02 < standings["unknown"] / COUNT < 0.04
    assert 0 < standings["refused"] < standings["unknown"]
    currencies = Counter(offer.currency for offer in offers)
    assert 0.05 < currencies["CNY"] / COUNT < 0.2
    assert all((offer.price_micros_per_month is not None) == (offer.standing == "priced") for offer in offers)


def test_a_million_are_different_combinations() -> None:
    first = list(islice(generate.offers(1_000_000), COUNT))
    assert len({offer.id for offer in first}) == COUNT
    with pytest.raises(ValueError, match="1,000,001 offers were requested, but only 1,000,000 exist"):
        next(generate.offers(1_000_001))


def test_our_importer_reads_generated_gpuhunt_files_completely(tmp_path: Path) -> None:
    generate.write_gpuhunt(tmp_path, COUNT)
    clock = SystemClock()
    database = open_database(":memory:", clock)
    origin = Origin(source="gpuhunt", layout="gpuhunt", path=tmp_path, day_of=lambda file: "2026-08-22")
    report = import_offers(database, Rates([]), clock, origin)
    assert (report.rows_read, report.priced, report.rejected) == (COUNT, COUNT, ())
    with database.read() as tx:
        a100 = [offer for offer in store.every(tx) if offer.gpu_name == "A100"]
    assert a100
    assert all(offer.gpu in find_kinds("A100") for offer in a100)
    database.close()
