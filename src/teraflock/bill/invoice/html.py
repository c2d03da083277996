"""An invoice as a page that can be printed or sent: one file, no scripts, nothing loaded from elsewhere."""

from datetime import UTC, datetime
from html import escape
from typing import Final

from teraflock.base.money import decimal_text
from teraflock.bill.invoice.model import Invoice, Line
from teraflock.bill.invoice.rules import number_text
from teraflock.bill.times import moment, month_bounds

DECIMALS: Final = {"JPY": 0, "KRW": 0}
"""Of what is printed in a currency; two unless it is named here."""
_STYLE: Final = """
@page { size: A4; margin: 18mm 16mm }
* { box-sizing: border-box }
body { font: 10.5pt/1.45 -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; color: #1b1f24; margin: 0 auto;
  max-width: 190mm; padding: 10mm 6mm }
header { display: flex; justify-content: space-between; align-items: flex-start; border-bottom: 2px solid #1b1f24;
  padding-bottom: 5mm }
h1 { font-size: 20pt; margin: 0; letter-spacing: -.01em }
.quiet { color: #59636e }
.parties { display: flex; gap: 14mm; margin: 8mm 0 }
.parties > div { flex: 1 }
.parties h2 { font-size: 8.5pt; text-transform: uppercase; letter-spacing: .06em; color: #59636e; margin: 0 0 1mm }
address { font-style: normal; white-space: pre-line }
table { width: 100%; border-collapse: collapse; margin-top: 4mm }
th { text-align: left; font-size: 8.5pt; text-transform: uppercase; letter-spacing: .06em; color: #59636e;
  border-bottom: 1px solid #d1d9e0; padding: 1.5mm 0 }
td { padding: 1.8mm 0; border-bottom: 1px solid #eaeef2; vertical-align: top }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; padding-left: 6mm }
tr { break-inside: avoid }
.sums { width: 80mm; margin-left: auto }
.sums td { border: 0; padding: 1mm 0 }
.sums .due td { border-top: 2px solid #1b1f24; font-weight: 600; font-size: 12pt; padding-top: 2mm }
footer { margin-top: 10mm; font-size: 9pt }
"""


def page(invoice: Invoice, *, issuer: str) -> str:
    """The whole document; `issuer` is the name and address of the house, line by line."""
    document = invoice.document
    name, _, rest = issuer.partition("\n")
    rows = "\n".join(_row(line, invoice.currency) for line in document.lines)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Invoice {number_text(invoice)}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<div><h1>Invoice</h1><div class="quiet">{number_text(invoice)}</div></div>
<div><strong>{escape(name)}</strong><address class="quiet">{escape(rest)}</address></div>
</header>
<section class="parties">
<div><h2>For</h2><address>{escape(document.customer or document.project)}</address></div>
<div><h2>Project</h2>{escape(document.project)}</div>
<div><h2>Period</h2>{_period(invoice.month)}<br><span class="quiet">times in UTC</span></div>
<div><h2>Issued</h2>{_date(moment(invoice.issued_at_us))}</div>
</section>
<table>
<thead><tr><th>What</th><th class="number">Quantity</th><th class="number">Amount</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
<table class="sums">
{_sums(invoice)}
</table>
<footer class="quiet">
<p>Charged by the second at the prices of the day; {escape(invoice.currency)} amounts are kept to the millionth and
rounded here for print: the sums are those of the exact amounts.</p>
</footer>
</body>
</html>
"""


def _row(line: Line, currency: str) -> str:
    return (
        f'<tr><td>{escape(line.what)}<br><span class="quiet">{escape(line.details)}</span></td>'
        f'<td class="number">{escape(line.quantity)}</td>'
        f'<td class="number">{_amount(line.micros, currency)}</td></tr>'
    )


def _sums(invoice: Invoice) -> str:
    document = invoice.document
    rate = decimal_text(document.tax_bp * 10_000, 2).rstrip("0").rstrip(".")
    lines = [("Sum", invoice.usage_micros, "")]
    if invoice.credit_micros:
        lines.append(("Credits", -invoice.credit_micros, ""))
    if document.tax_bp:
        lines.append((f"{document.tax_name or 'Tax'} {rate} %", invoice.tax_micros, ""))
    if invoice.paid_micros:
        lines.append(("Paid in advance", -invoice.paid_micros, ""))
    lines.append(("Due", invoice.due_micros, ' class="due"'))
    return "\n".join(
        f'<tr{mark}><td>{escape(words)}</td><td class="number">{_amount(micros, invoice.currency)}</td></tr>'
        for words, micros, mark in lines
    )


def _amount(micros: int, currency: str) -> str:
    return f"{decimal_text(micros, DECIMALS.get(currency, 2))}&nbsp;{escape(currency)}"


def _period(month: str) -> str:
    from_us, until_us = month_bounds(month)
    return f"{_date(moment(from_us))} – {_date(moment(until_us - 1))}"


def _date(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%-d %B %Y")
