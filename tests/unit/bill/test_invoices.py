"""Invoices over several months: their contents, their payments and the printed text."""

import re
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.bill.test_paying import Bills
from tests.unit.bill.world import PROJECT

from teraflock.base.errors import Conflict, Refused
from teraflock.bill.budget.model import Budget
from teraflock.bill.invoice.html import page
from teraflock.bill.invoice.model import Document, Invoice, InvoiceLine
from teraflock.bill.invoice.paper import amount_text, paper
from teraflock.bill.invoice.pdf import pdf
from teraflock.bill.invoice.rules import months_due, tax_micros
from teraflock.bill.store import Profile
from teraflock.instance.states import Phase

DAY_US = 86_400 * 10**6


@pytest.fixture
def books() -> Bills:
    return Bills()


def until(books: Bills, *when: int) -> None:
    """Let time pass, book everything, and issue the invoices that are due."""
    books.world.clock.move(datetime(*when, tzinfo=UTC) - books.world.clock.now())  # type: ignore[misc, arg-type]
    books.world.book()
    books.bills.invoices.issue_all()


def owed(books: Bills) -> int:
    return books.bills.standing(PROJECT)[2]


# -- which month -------------------------------------------------------------------------------------------------------


def test_late_charges_are_on_the_next_invoice_under_their_month(books: Bills) -> None:
    books.run("ins_1", name="box")
    books.run("ins_2", name="other")
    until(books, 2026, 2, 3)
    first = books.bills.invoices.one(PROJECT, "2026-01")
    stopped_us = books.world.now_us - 6 * DAY_US
    books.world.move("ins_1", Phase.STOPPING, name="box", asked_at_us=stopped_us)
    until(books, 2026, 3, 2)
    assert books.bills.invoices.one(PROJECT, "2026-01") == first, "an invoice never changes"
    second = books.bills.invoices.one(PROJECT, "2026-02")
    (late,) = [line for line in second.document.lines if line.month]
    assert (late.what, late.month) == ("box", "2026-01")
    assert late.micros < 0
    assert late.quantity.startswith("-")
    made = paper(second, issuer="Seller")
    assert [part.heading for part in made.parts] == ["", "Corrections for January 2026"]
    assert sum(line.micros for line in second.document.lines) == second.usage_micros
    charged = books.world.rows("SELECT SUM(micros) FROM charge WHERE month <= '2026-02'")[0][0]
    assert first.usage_micros + second.usage_micros == charged
    books.check()


def test_a_month_without_charges_has_no_invoice(books: Bills) -> None:
    books.run("ins_1")
    books.world.wait(hours=1)
    books.world.move("ins_1", Phase.STOPPING)
    books.world.move("ins_1", Phase.GONE)
    for month in range(2, 6):
        until(books, 2026, month, 2)
    assert [invoice.month for invoice, _ in books.bills.invoices.of_project(PROJECT)] == ["2026-01"]
    with pytest.raises(Refused):
        books.bills.invoices.issue(PROJECT, "2026-03")
    books.check()


def test_a_refund_alone_is_a_credit_note(books: Bills) -> None:
    books.run("ins_1")
    until(books, 2026, 2, 1, 0, 20)
    books.world.move("ins_1", Phase.STOPPING, asked_at_us=books.world.now_us - 9 * DAY_US)
    until(books, 2026, 3, 2)
    note = books.bills.invoices.one(PROJECT, "2026-02")
    assert note.due_micros < 0
    assert note.tax_micros == 0
    made = paper(note, issuer="Seller")
    assert (made.title, made.due.words) == ("Credit note", "In your favour")
    books.check()


def test_months_are_invoiced_in_order(books: Bills) -> None:
    books.run("ins_1")
    until(books, 2026, 1, 20)
    with pytest.raises(Refused):
        books.bills.invoices.issue(PROJECT, "2026-01")
    books.world.clock.move(timedelta(days=60))
    books.world.book()
    books.bills.invoices.issue(PROJECT, "2026-02")
    with pytest.raises(Conflict):
        books.bills.invoices.issue(PROJECT, "2026-01")
    (only,) = [invoice for invoice, _ in books.bills.invoices.of_project(PROJECT)]
    charged = books.world.rows("SELECT SUM(micros) FROM charge WHERE month <= '2026-02'")[0][0]
    assert only.usage_micros == charged, "January stands on it too"
    assert not any(line.month for line in only.document.lines), "and is no correction: it was not invoiced"
    books.check()


# -- who pays what -----------------------------------------------------------------------------------------------------


def test_a_top_up_pays_the_open_invoice_not_the_next(books: Bills) -> None:
    books.bills.set_profile(Profile(project_id=PROJECT, currency="USD", pays="prepaid"))
    books.bills.invoices.pay_in(PROJECT, 100_000_000)
    books.run("ins_1")
    until(books, 2026, 2, 10)
    january = books.bills.invoices.one(PROJECT, "2026-01")
    assert january.paid_micros == 100_000_000
    assert january.due_micros > 0
    spent = books.world.rows("SELECT SUM(micros) FROM charge WHERE month = '2026-02'")[0][0]
    assert owed(books) == january.due_micros + spent
    books.bills.invoices.pay_in(PROJECT, january.due_micros + 7_000_000)
    ((_, still_open),) = books.bills.invoices.of_project(PROJECT)
    assert still_open == 0
    assert owed(books) == spent - 7_000_000
    until(books, 2026, 3, 2)
    february = books.bills.invoices.one(PROJECT, "2026-02")
    assert february.paid_micros == 7_000_000, "what paid January does not stand here"
    assert february.due_micros == february.usage_micros + february.tax_micros - 7_000_000
    books.check()


def test_a_top_up_pays_the_old_month_before_it_is_invoiced(books: Bills) -> None:
    books.bills.set_profile(Profile(project_id=PROJECT, currency="USD", pays="prepaid"))
    books.run("ins_1")
    books.world.clock.move(datetime(2026, 2, 2, tzinfo=UTC) - books.world.clock.now())
    books.world.book()
    used = books.world.rows("SELECT SUM(micros) FROM charge WHERE month = '2026-01'")[0][0]
    books.bills.invoices.pay_in(PROJECT, used - 1_000_000)
    books.bills.invoices.issue_all()
    january = books.bills.invoices.one(PROJECT, "2026-01")
    assert january.paid_micros == used - 1_000_000
    assert january.due_micros == january.tax_micros + 1_000_000
    books.check()


@given(
    unpaid=st.dictionaries(st.sampled_from(["2026-01", "2026-02", "2026-03"]), st.integers(-50, 100)),
    owed=st.integers(-20, 300),
)
def test_dues_are_oldest_first_and_at_most_what_is_owed(unpaid: dict[str, int], owed: int) -> None:
    dues = months_due(unpaid, owed)
    positive = {month: micros for month, micros in unpaid.items() if micros > 0}
    assert sum(due.micros for due in dues) == max(0, min(owed, sum(positive.values())))
    assert all(0 < due.micros <= positive[due.month] for due in dues)
    months = [due.month for due in dues]
    assert months == sorted(positive)[: len(months)]
    assert all(due.micros == positive[due.month] for due in dues[:-1])


def test_the_currency_cannot_change_while_there_is_money(books: Bills) -> None:
    euros = Profile(project_id=PROJECT, currency="EUR")
    books.bills.credits.grant(PROJECT, 5_000_000, "gift", books.world.clock.now() + timedelta(days=1))
    with pytest.raises(Conflict, match="credits"):
        books.bills.set_profile(euros)
    until(books, 2026, 1, 20)
    books.bills.set_profile(euros)  # it has lapsed
    books.bills.invoices.pay_in(PROJECT, 1)
    with pytest.raises(Conflict, match="paid ahead"):
        books.bills.set_profile(Profile(project_id=PROJECT, currency="USD"))
    books.check()


# -- the border of a month ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expires", [(2026, 2, 1), (2026, 1, 31, 23, 59, 59)])
def test_a_credit_pays_for_its_last_day_and_nothing_after(books: Bills, expires: tuple[int, ...]) -> None:
    books.bills.credits.grant(PROJECT, 10**12, "gift", datetime(*expires, tzinfo=UTC))  # type: ignore[misc, arg-type]
    books.run("ins_1")
    until(books, 2026, 3, 5)
    (grant,) = books.bills.credits.grants(PROJECT)
    used = books.world.rows("SELECT SUM(micros) FROM charge WHERE month = '2026-01'")[0][0]
    assert (grant.drawn_micros, grant.expired) == (used, True)
    january, february = (books.bills.invoices.one(PROJECT, month) for month in ("2026-01", "2026-02"))
    assert (january.credit_micros, january.due_micros, january.tax_micros) == (used, 0, 0)
    assert february.credit_micros == 0
    assert february.due_micros == february.usage_micros + tax_micros(february.usage_micros, 2_000)
    books.check()


def test_a_credit_does_not_pay_for_the_month_before_it(books: Bills) -> None:
    books.run("ins_1")
    books.world.clock.move(datetime(2026, 2, 1, 0, 5, tzinfo=UTC) - books.world.clock.now())
    books.bills.credits.grant(PROJECT, 10**12, "gift")
    until(books, 2026, 3, 5)
    january, february = (books.bills.invoices.one(PROJECT, month) for month in ("2026-01", "2026-02"))
    assert january.credit_micros == 0, "though it was booked when the credit was there"
    assert february.credit_micros == february.usage_micros
    books.check()


def test_a_budget_restarts_every_month(books: Bills) -> None:
    books.bills.budgets.set(Budget(project_id=PROJECT, currency="", micros=10**9, levels=(1,)))
    books.run("ins_1")
    books.world.clock.move(datetime(2026, 1, 31, 23, 59, tzinfo=UTC) - books.world.clock.now())
    books.bills.budgets.turn()
    before = books.bills.budgets.standing(PROJECT)
    books.world.clock.move(timedelta(minutes=2))
    books.bills.budgets.turn()
    after = books.bills.budgets.standing(PROJECT)
    assert before is not None
    assert after is not None
    assert (before.month, after.month) == ("2026-01", "2026-02")
    assert before.spent_micros > 20 * 24 * 3_000_000
    assert 0 < after.spent_micros < 60_000_000 // 60, "a minute of February, though January is not booked yet"
    books.world.clock.move(timedelta(hours=30))
    books.bills.budgets.turn()
    told = books.world.rows("SELECT month FROM budget_notice WHERE kind = 'level' ORDER BY month")
    assert [row[0] for row in told] == ["2026-01", "2026-02"], "each month tells its own levels"


# -- what is printed ---------------------------------------------------------------------------------------------------


def invoice(*lines: InvoiceLine, customer: str = "A lab", currency: str = "USD", **changes: int) -> Invoice:
    usage = sum(line.micros for line in lines)
    amounts = {"credit_micros": 0, "tax_micros": 0, "paid_micros": 0, **changes}
    due = usage - amounts["credit_micros"] + amounts["tax_micros"] - amounts["paid_micros"]
    return Invoice(
        number=17, project_id=PROJECT, month="2026-10", currency=currency, charges_after=0, charges_until=9,
        usage_micros=usage, due_micros=due, issued_at_us=1_793_500_800_000_000, **amounts,
        document=Document(
            project="default", month="2026-10", customer=customer, tax_name="VAT", tax_bp=1_925, charges_until=9,
            entries_until=9, lines=lines,
        ),
    )  # fmt: skip


def line(number: int) -> InvoiceLine:
    return InvoiceLine(
        what=f"box-{number}", details="1 × V100-SXM2", quantity="1.000 h", micros=3_060_000 + number
    )


def pages(content: bytes) -> int:
    return len(re.findall(rb"/Type /Page\b", content))


def test_totals_are_labelled_and_rounded_once() -> None:
    made = paper(
        invoice(line(1), line(2), credit_micros=1_005_000, tax_micros=990_000, paid_micros=2_000_000),
        issuer="H",
    )
    assert [(each.words, each.amount) for each in made.sums] == [
        ("Subtotal", "6.12\u00a0USD"), ("Credits", "−1.00\u00a0USD"), ("VAT 19.25\u00a0%", "0.99\u00a0USD"),
        ("Total", "6.11\u00a0USD"), ("Paid in advance", "−2.00\u00a0USD"),
    ]  # fmt: skip
    assert (made.due.words, made.due.amount) == ("Due", "4.11\u00a0USD")
    assert amount_text(1_234_567_890_000, "JPY") == "1,234,568\u00a0JPY"
    assert amount_text(1_234_567, "KWD") == "1.235\u00a0KWD"


def test_a_pdf_is_reproducible_and_breaks_pages() -> None:
    short, long = invoice(line(1)), invoice(*(line(number) for number in range(200)))
    assert pdf(short, issuer="Seller") == pdf(short, issuer="Seller")
    assert pages(pdf(short, issuer="Seller")) == 1
    assert pages(pdf(long, issuer="Seller")) > 8
    assert pages(pdf(invoice(), issuer="Seller")) == 1


def test_many_scripts_are_printed_and_unsupported_characters_named() -> None:
    for name in (
        "深度学习研究所（北京）",
        "東京 かな カナ",
        "Лаборатория зрения",
        "Ελλάδα",
        "Žižkov",
        "Cafe\u0301 №5 €₽¥",
    ):
        assert pdf(invoice(line(1), customer=name), issuer=name).startswith(b"%PDF-")
    with pytest.raises(Refused, match="these characters: `가 각`"):
        pdf(invoice(line(1), customer="각가"), issuer="Seller")


def test_a_server_starts_without_loading_the_pdf_library() -> None:
    code = "import sys, teraflock.app.server, teraflock.api.routes.all; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "teraflock.bill.invoice.html" in loaded
    assert not {"fpdf", "fontTools", "PIL"} & set(loaded)


@settings(max_examples=8, deadline=None)
@given(customer=st.text(max_size=300), what=st.text(max_size=80), micros=st.integers(-(10**15), 10**15))
def test_any_text_is_printed_or_refused(customer: str, what: str, micros: int) -> None:
    made = invoice(
        InvoiceLine(what=what, details=customer, quantity="1.000 h", micros=micros),
        line(1),
        customer=customer,
    )
    html = page(made, issuer=customer)
    assert "<script" not in html.lower()
    with suppress(Refused):
        assert pages(pdf(made, issuer=customer)) >= 1


# -- what a customer reads ---------------------------------------------------------------------------------------------


def test_an_instance_is_one_line_with_its_shapes_in_the_annex(books: Bills) -> None:
    books.run("ins_1", name="train")
    books.world.clock.move(timedelta(days=1))
    books.world.move("ins_1", Phase.RUNNING, name="train", gpus=2)
    books.run("ins_2", name="plain")
    until(books, 2026, 2, 3)
    found = books.bills.invoices.one(PROJECT, "2026-01")
    assert sorted(each.what for each in found.document.lines) == ["plain", "train"]
    assert [each.what for each in found.document.annex] == ["train", "train"]
    assert {each.unit_price for each in found.document.annex} == {"3.3020 USD/h", "6.3620 USD/h"}
    (train,) = [each for each in found.document.lines if each.what == "train"]
    assert train.micros == sum(each.micros for each in found.document.annex)
    (plain,) = [each for each in found.document.lines if each.what == "plain"]
    assert plain.unit_price == "3.3020 USD/h"
    assert books.bills.verify().is_sound


def test_free_lines_are_omitted_and_tiny_amounts_are_combined() -> None:
    tiny = [InvoiceLine(what=f"t-{n}", details="", quantity="0.000 h", micros=2_000) for n in range(9)]
    made = paper(invoice(line(1), *tiny), issuer="Seller")
    assert [each.what for each in made.parts[0].lines] == ["box-1", "9 more, each below 0.01\u00a0USD"]
    assert made.parts[0].lines[1].amount == "0.02\u00a0USD"
    made = paper(invoice(line(1), *tiny[:2]), issuer="Seller")
    assert [each.what for each in made.parts[0].lines] == ["box-1"]


def test_an_invoice_names_the_organisation_tax_number_and_due_date(books: Bills) -> None:
    books.run("ins_1")
    books.bills.set_profile(Profile(project_id=PROJECT, currency="USD", tax_number="PL 1"))
    until(books, 2026, 2, 3)
    found = books.bills.invoices.one(PROJECT, "2026-01")
    named = replace(found, document=replace(found.document, organisation="Vision Lab"))
    facts = dict(paper(named, issuer="Seller").facts)
    assert facts["For"] == "Vision Lab\nTax number PL 1"
    assert facts["Issued"] == "3 February 2026\ndue 17 Feb 2026"


def test_a_preview_matches_the_later_invoice_and_changes_nothing(books: Bills) -> None:
    books.run("ins_1", name="box")
    books.world.clock.move(timedelta(days=3, hours=5))
    books.world.book()
    before = books.bills.invoices.of_project(PROJECT)
    first = books.bills.invoices.preview(PROJECT, "2026-01")
    bill = books.bills.bill(PROJECT, "2026-01")
    assert first.usage_micros == bill.micros + bill.unbooked_micros
    assert books.bills.invoices.of_project(PROJECT) == before
    made = paper(first, issuer="Seller")
    assert (made.title, made.number) == ("Invoice preview", "2026-01 PREVIEW")
    assert "not an invoice" in made.note
    books.world.move("ins_1", Phase.STOPPING, name="box")
    books.world.move("ins_1", Phase.DELETING, name="box")
    until(books, 2026, 2, 3)
    issued = books.bills.invoices.one(PROJECT, "2026-01")
    assert (issued.usage_micros, issued.tax_micros) == (first.usage_micros, first.tax_micros)
    with pytest.raises(Conflict, match="has been issued"):
        books.bills.invoices.preview(PROJECT, "2026-01")
