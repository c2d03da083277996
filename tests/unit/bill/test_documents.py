"""The HTML page of an invoice has the required contents, and an invoice is issued once."""

from collections.abc import Iterator

import pytest
from tests.unit.bill.test_verify import books
from tests.unit.bill.world import PROJECT, RATES, World

from teraflock.bill.invoice.html import page
from teraflock.bill.service import BillService


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = books()
    yield made
    made.database.close()


def test_an_invoice_is_a_self_contained_page(world: World) -> None:
    invoices = BillService(world.database, world.clock, RATES).invoices
    made = invoices.one(PROJECT, "2026-01")
    html = page(made, issuer="Smith & Sons\nA street 1\n<b>Town</b>")
    assert "2026-01-00001" in html
    assert "VAT 20\u00a0%" in html
    assert "Smith &amp; Sons" in html
    assert "<b>Town" not in html, "what people write is text"
    assert "http" not in html, "nothing is loaded from elsewhere"
    assert "<script" not in html
    assert sum(line.micros for line in made.document.lines) == made.usage_micros
    assert made.due_micros == made.usage_micros - made.credit_micros + made.tax_micros - made.paid_micros


def test_an_invoice_is_issued_once_and_never_changes(world: World) -> None:
    invoices = BillService(world.database, world.clock, RATES).invoices
    before = world.rows("SELECT * FROM invoice")
    assert invoices.issue(PROJECT, "2026-01").number == 1
    assert invoices.issue_all() == 0
    assert world.rows("SELECT * FROM invoice") == before
