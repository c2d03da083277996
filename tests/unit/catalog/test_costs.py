"""Prices besides the machine have a date, a source and known evidence."""

import tomllib
from pathlib import Path

from teraflock.catalog.cards import data_path
from teraflock.catalog.costs import UNKNOWN, ExtraPrice, ProviderCosts, costs_of
from teraflock.catalog.providers import all_providers
from teraflock.offer.rules import first_day


def test_every_price_has_a_date_and_a_source() -> None:
    tables = tomllib.loads(Path(data_path("costs.toml")).read_text("utf-8"))
    providers = list(tables)
    for costs in tables.values():
        assert set(costs) <= set(ProviderCosts.__struct_fields__)
        for price in costs.values():
            assert isinstance(price, str) or set(price) <= set(ExtraPrice.__struct_fields__)
    assert set(providers) <= {each.id for each in all_providers()}
    for provider in providers:
        known = costs_of(provider)
        for price in (known.disk, known.egress, known.address):
            if price:
                assert price.micros >= 0
                assert price.stopped_micros >= price.micros
                assert first_day(price.as_of) > "2019"
                assert price.source
                assert price.what
    assert costs_of("nobody") == UNKNOWN
    assert costs_of("paperspace").disk is not None


def test_unconfirmed_prices_say_so() -> None:
    disk, confirmed = costs_of("lambda").disk, costs_of("runpod").disk
    assert disk is not None
    assert confirmed is not None
    assert "not confirmed" in disk.because
    assert "not confirmed" not in confirmed.because
