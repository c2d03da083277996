"""The export follows FOCUS 1.2, adds up to the invoices, and amortises purchases to the last millionth."""

import csv
import gzip
import io
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.bill.focus_rules import faults
from tests.unit.bill.test_paying import Bills
from tests.unit.bill.world import GB, OTHER_PROJECT, PROJECT, labels

from teraflock.base.size import Size
from teraflock.bill.export.amortised import Amortised
from teraflock.bill.export.focus import focus_csv
from teraflock.bill.export.model import COLUMNS, BillingAccount
from teraflock.bill.export.text import money, number
from teraflock.bill.purchase.model import Purchase, Term
from teraflock.bill.store import Profile
from teraflock.instance.states import Phase
from teraflock.tenant.model import ProjectId

MONTHS = ("2026-01", "2026-02", "2026-03", "2026-04")
PROJECTS = (PROJECT, OTHER_PROJECT)


def months_of_everything() -> Bills:
    """Usage, spot, a stop that was detected late, purchases of all kinds, credits and tax, over several invoices."""
    books = Bills()
    world, bills = books.world, books.bills
    bills.set_profile(Profile(project_id=OTHER_PROJECT, currency="EUR"))
    bills.credits.grant(PROJECT, 25_000_000, "sign-up", world.clock.now() + timedelta(days=9))
    books.run("ins_1", labels=labels(team="视觉", cost="a,\"b\"\n'c'"), name="training, the first")
    books.run("ins_2", mode="spot", project=OTHER_PROJECT)
    world.wait(30)
    books.run("ins_3", gpu="", gpus=0, disk_bytes=7 * GB, project=OTHER_PROJECT)
    world.wait(17.000_003)
    world.sent("ins_3", 3 * GB + 1)
    world.move("ins_3", Phase.STOPPING, project=OTHER_PROJECT, gpu="", gpus=0, disk_bytes=7 * GB)
    books.run("ins_4")
    bought, _ = bills.purchases.buy(PROJECT, "ins_1", "monthly")
    bills.purchases.buy(OTHER_PROJECT, "ins_2", "reserved", years=1, upfront=True)
    world.wait(days=12)
    world.move("ins_1", Phase.RUNNING, gpus=2, labels=labels(team="vision"))
    bills.meter.catch_up()
    world.wait(days=1)
    bills.purchases.upgrade(PROJECT, bought.id)
    world.wait(days=1)
    world.move("ins_1", Phase.RUNNING, gpus=3, snapshots_bytes=GB)
    world.move("ins_2", Phase.STOPPING, mode="spot", project=OTHER_PROJECT)
    world.move("ins_2", Phase.STOPPED, mode="spot", project=OTHER_PROJECT)
    _until_invoiced(books)
    late_us = world.now_us - 8 * 24 * 3600 * 10**6
    world.move("ins_1", Phase.STOPPING, gpus=3, asked_at_us=late_us)
    world.move("ins_4", Phase.STOPPING, asked_at_us=late_us)
    world.move("ins_4", Phase.STOPPED)
    world.wait(days=10)
    world.book()
    bills.purchases.end(PROJECT, bought.id)
    for _ in range(3):
        _until_invoiced(books)
    books.check()
    return books


def _until_invoiced(books: Bills) -> None:
    """Wait until the fifth of the next month."""
    now = books.world.clock.now()
    there = (now.replace(day=1) + timedelta(days=32)).replace(day=5, hour=1)
    books.world.clock.move(there - now)
    books.world.book()
    books.bills.invoices.issue_all()


@pytest.fixture(scope="module")
def books() -> Iterator[Bills]:
    made = months_of_everything()
    yield made
    made.world.database.close()


def exported(books: Bills, project: ProjectId, month: str) -> str:
    account = BillingAccount(
        organisation_id="org_1", organisation="lab", project_id=project, project="default"
    )
    return "".join(books.bills.focus(account, month))


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def total(rows: list[dict[str, str]], column: str) -> Decimal:
    return sum((Decimal(row[column] or 0) for row in rows), Decimal(0))


@pytest.mark.parametrize("month", MONTHS)
@pytest.mark.parametrize("project", PROJECTS)
def test_every_month_follows_the_focus_rules(books: Bills, project: ProjectId, month: str) -> None:
    text = exported(books, project, month)
    assert faults(text) == []
    assert tuple(read(text)[0]) == COLUMNS


def test_the_example_covers_every_kind_of_row(books: Bills) -> None:
    rows = [row for project in PROJECTS for month in MONTHS for row in read(exported(books, project, month))]
    seen = {(row["ChargeCategory"], row["ChargeClass"], row["CommitmentDiscountStatus"]) for row in rows}
    assert seen >= {
        ("Usage", "", ""), ("Usage", "", "Used"), ("Usage", "", "Unused"), ("Usage", "Correction", ""),
        ("Usage", "Correction", "Used"), ("Usage", "Correction", "Unused"), ("Purchase", "", ""),
        ("Adjustment", "", ""), ("Credit", "", ""), ("Tax", "", ""),
    }  # fmt: skip
    assert {row["ChargeFrequency"] for row in rows} == {"One-Time", "Recurring", "Usage-Based"}
    assert {row["PricingCategory"] for row in rows} == {"Standard", "Dynamic", "Committed", ""}
    assert {row["SkuId"].partition("/")[0] for row in rows} >= {
        "gpu", "vcpu", "ram", "disk", "snapshot", "egress", "minimum", "committed", "monthly", "reserved",
    }  # fmt: skip


def test_the_export_text_is_stable(books: Bills) -> None:
    """Two exports of one month must be identical."""
    kept = gzip.decompress((Path(__file__).parent / "focus_2026.csv.gz").read_bytes()).decode()
    assert "".join(exported(books, project, month) for project in PROJECTS for month in MONTHS) == kept


@given(
    st.lists(
        st.dictionaries(st.sampled_from(COLUMNS), st.text(st.sampled_from("ab,\"\n\r 'é{}:"), max_size=4)),
        max_size=4,
    )
)
def test_rows_are_quoted_as_csv(rows: list[dict[str, str]]) -> None:
    whole = [{**dict.fromkeys(COLUMNS, ""), **row, "Tags": row.get("Tags") or "{}"} for row in rows]
    expected = io.StringIO()
    writer = csv.DictWriter(expected, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(whole)
    assert "".join(focus_csv(whole)) == expected.getvalue()


@given(micros=st.integers(-(10**15), 10**15))
def test_money_is_written_as_an_exact_decimal(micros: int) -> None:
    assert money(micros) == number(Decimal(micros) / 1_000_000)


@pytest.mark.parametrize("project", PROJECTS)
def test_billed_costs_add_up_to_each_invoice(books: Bills, project: ProjectId) -> None:
    invoices = [invoice for invoice, _ in books.bills.invoices.of_project(project)]
    assert len(invoices) >= 3
    for invoice in invoices:
        rows = read(exported(books, project, invoice.month))
        owed = invoice.usage_micros - invoice.credit_micros + invoice.tax_micros
        assert total(rows, "BilledCost") * 1_000_000 == owed
        assert {row["InvoiceId"] for row in rows} == {f"{invoice.month}-{invoice.number:05}"}


def test_a_month_ended_early_is_settled(books: Bills) -> None:
    """The cost is the fee minus the refund, split completely into used and unused rows."""
    rows = [row for month in MONTHS for row in read(exported(books, PROJECT, month))]
    own = [row for row in rows if row["CommitmentDiscountId"]]
    assert total(own, "EffectiveCost") == total(own, "BilledCost")
    assert total(own, "BilledCost") > 0
    kinds = {row["ChargeCategory"]: row for row in own}
    assert Decimal(kinds["Adjustment"]["BilledCost"]) < 0


def test_an_unfinished_month_has_no_unused_rows(books: Bills) -> None:
    rows = read(exported(books, OTHER_PROJECT, books.bills.month_now()))
    assert not [row for row in rows if row["CommitmentDiscountStatus"] == "Unused"]


DAMAGES = {
    "BilledCost": ["", "1e", "ten"], "BillingAccountName": [""], "BillingAccountType": [""],
    "BillingCurrency": ["", "usd"],
    "ChargeCategory": ["", "Refund"], "ChargeClass": ["Fix"], "ChargeDescription": [""], "ChargeFrequency": ["Daily"],
    "ChargePeriodEnd": ["2020-01-01T00:00:00Z", "2026-01-01"], "BillingPeriodStart": ["2027-01-01T00:00:00Z"],
    "ListCost": ["", "123456"], "ContractedCost": ["", "123456"], "EffectiveCost": [""], "ListUnitPrice": ["-1", ""],
    "PricingCategory": ["Free", ""], "PricingQuantity": [""], "PricingUnit": [""], "ServiceCategory": ["GPU"],
    "ServiceSubcategory": ["", "Block Storage"], "SkuId": [""], "SkuPriceId": [""], "SkuMeter": [""],
    "Tags": ["a=b", "[]"],
    "ConsumedQuantity": ["", "-2", "0"], "ConsumedUnit": [""], "RegionName": [""], "ResourceType": [""],
    "CommitmentDiscountStatus": ["Used"], "CommitmentDiscountId": ["pur_x"], "CommitmentDiscountQuantity": ["5"],
    "PricingCurrencyEffectiveCost": ["", "77"], "PricingCurrency": ["", "E"], "SubAccountType": [""],
    "ProviderName": [""],
}  # fmt: skip


@pytest.mark.parametrize("column", DAMAGES)
def test_the_rules_find_a_wrong_field(books: Bills, column: str) -> None:
    """Change one field of one usage row."""
    rows = read(exported(books, PROJECT, "2026-01"))
    place = next(index for index, row in enumerate(rows) if row["SkuId"].startswith("gpu/"))
    for value in DAMAGES[column]:
        damaged = [dict(row) for row in rows]
        damaged[place][column] = value
        assert faults(written(damaged)), f"{column} = {value!r} was not found"


def test_the_rules_find_missing_and_unknown_columns(books: Bills) -> None:
    rows = read(exported(books, PROJECT, "2026-01"))
    for name in ("BilledCost", "SkuMeter"):
        assert faults(written([{key: row[key] for key in row if key != name} for row in rows]))
    assert faults(written([{**row, "Colour": "red"} for row in rows]))
    assert not faults(written([{**row, "x_Colour": "red"} for row in rows]))


def written(rows: list[dict[str, str]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


# -- spreading ---------------------------------------------------------------------------------------------------------


@given(
    lengths=st.lists(st.integers(1, 500), min_size=1, max_size=4),
    fees=st.lists(st.integers(0, 10_000), min_size=4, max_size=4),
    grown=st.one_of(st.none(), st.tuples(st.integers(1, 499), st.integers(0, 3_000))),
    ended=st.one_of(st.none(), st.integers(1, 500)),
    borders=st.sets(st.integers(1, 1_999), max_size=6),
    uses=st.sets(st.integers(0, 2_000), max_size=12),
)
def test_every_fee_is_spread_completely_over_any_months(
    lengths: list[int], fees: list[int], grown: tuple[int, int] | None, ended: int | None,
    borders: set[int], uses: set[int],
) -> None:  # fmt: skip
    terms = _terms(lengths, fees, grown, ended)
    first, last = terms[0].from_us, terms[-1].from_us if ended else terms[-1].until_us
    purchase = Purchase(id="pur", project_id=ProjectId("prj"), instance_id="ins", mode="monthly", due_us=0)
    edges = sorted({0, 2_001, *borders})
    points = sorted({min(max(us, first), last) for us in uses} | {us for us in borders if first < us < last})
    used = list(pairwise(points))[::2]
    micros = time = 0
    for from_us, until_us in pairwise(edges):
        amortised = Amortised({"pur": (purchase, terms)}, from_us, until_us)
        for start, end in used:
            if from_us <= start < until_us:
                micros += amortised.used("pur", start, end)
                time += end - start
        for unused in amortised.unused():
            assert unused.us > 0
            micros, time = micros + unused.micros, time + unused.us
    paid = [term for term in terms if term.kind != "ended"]
    assert micros == sum(term.fee_micros for term in paid)
    assert time == sum(term.until_us - term.from_us for term in paid if term.kind != "upgraded")


def _terms(
    lengths: list[int], fees: list[int], grown: tuple[int, int] | None, ended: int | None
) -> list[Term]:
    make = partial(Term, purchase_id="pur", instance_id="ins", covers=Size(), currency="USD", month_micros=0)
    terms, at = [], 0
    for sequence, (length, fee) in enumerate(zip(lengths, fees, strict=False)):
        kind = "renewed" if sequence else "bought"
        terms.append(make(sequence=sequence, kind=kind, from_us=at, until_us=at + length, fee_micros=fee))
        at += length
    start = terms[-1].from_us
    if grown:
        from_us = start + grown[0] % (at - start)
        terms.append(
            make(sequence=len(terms), kind="upgraded", from_us=from_us, until_us=at, fee_micros=grown[1])
        )
        start = from_us
    if ended:
        from_us = start + ended % (at - start)
        terms.append(
            make(sequence=len(terms), kind="ended", from_us=from_us, until_us=from_us, fee_micros=-1)
        )
    return terms
