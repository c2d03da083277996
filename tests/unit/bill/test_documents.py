"""What leaves the house: the export adds up to the books, and an invoice says what it must and nothing it must not."""

import csv
import io
import re
from collections.abc import Iterator
from decimal import Decimal

import pytest
from tests.unit.bill.test_verify import books
from tests.unit.bill.world import RATES, World

from teraflock.bill.export.focus import COLUMNS, Account
from teraflock.bill.invoice.html import page
from teraflock.bill.service import BillService

CATEGORIES = {"Usage", "Purchase", "Tax", "Credit", "Adjustment"}
FREQUENCIES = {"One-Time", "Recurring", "Usage-Based"}
PRICING = {"Standard", "Dynamic", "Committed", "Other", ""}
SERVICES = {"AI and Machine Learning", "Compute", "Storage", "Networking", "Other"}
NEVER_EMPTY = (
    "BilledCost", "BillingAccountId", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory",
    "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName",
    "ListCost", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName",
)  # fmt: skip


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = books()
    yield made
    made.database.close()


@pytest.fixture(scope="module")
def rows(world: World) -> list[dict[str, str]]:
    account = Account(organisation_id="org_1", organisation="lab", project_id="prj_1", project="default")
    bills = BillService(world.database, world.clock, RATES)
    return list(csv.DictReader(io.StringIO("".join(bills.focus(account, "2026-01")))))


def test_every_row_has_the_columns_and_words_of_focus(rows: list[dict[str, str]]) -> None:
    assert len(rows) > 20
    for row in rows:
        assert tuple(row) == COLUMNS
        assert all(row[name] for name in NEVER_EMPTY), row
        assert row["ChargeCategory"] in CATEGORIES
        assert row["ChargeFrequency"] in FREQUENCIES
        assert row["PricingCategory"] in PRICING
        assert row["ServiceCategory"] in SERVICES
        assert row["ChargeClass"] in ("", "Correction")
        for name in ("BillingPeriodStart", "ChargePeriodEnd"):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[name])
        assert (row["CommitmentDiscountStatus"] != "") <= (row["CommitmentDiscountId"] != "")
        if row["ChargeCategory"] == "Purchase" and row["CommitmentDiscountId"]:
            assert row["EffectiveCost"] == "0"


def test_billed_costs_add_up_to_the_invoice(world: World, rows: list[dict[str, str]]) -> None:
    (usage, credit, tax) = world.rows(
        "SELECT usage_micros, credit_micros, tax_micros FROM invoice WHERE project_id = 'prj_1' AND month = '2026-01'"
    )[0]
    billed = sum((Decimal(row["BilledCost"]) for row in rows), Decimal(0))
    assert billed * 1_000_000 == usage - credit + tax


def test_list_cost_is_price_times_quantity(rows: list[dict[str, str]]) -> None:
    for row in rows:
        if row["PricingQuantity"] and row["ListUnitPrice"]:
            exact = Decimal(row["ListUnitPrice"]) * Decimal(row["PricingQuantity"])
            assert abs(exact - Decimal(row["ListCost"])) < Decimal("0.000001")


def test_an_invoice_is_a_page_of_its_own(world: World) -> None:
    invoices = BillService(world.database, world.clock, RATES).invoices
    made = invoices.one("prj_1", "2026-01")
    html = page(made, issuer="House & Sons\nA street 1\n<b>Town</b>")
    assert "2026-01-00001" in html
    assert "VAT 20 %" in html
    assert "House &amp; Sons" in html
    assert "<b>Town" not in html, "what people write is text"
    assert "http" not in html, "nothing is loaded from elsewhere"
    assert "<script" not in html
    assert sum(line.micros for line in made.document.lines) == made.usage_micros
    assert made.due_micros == made.usage_micros - made.credit_micros + made.tax_micros - made.paid_micros


def test_an_invoice_is_issued_once_and_never_changes(world: World) -> None:
    invoices = BillService(world.database, world.clock, RATES).invoices
    before = world.rows("SELECT * FROM invoice")
    assert invoices.issue("prj_1", "2026-01").number == 1
    assert invoices.issue_all() == 0
    assert world.rows("SELECT * FROM invoice") == before
