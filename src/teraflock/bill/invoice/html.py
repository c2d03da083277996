"""Renders an invoice as an HTML page to print or send: one file, without scripts or external resources."""

from html import escape
from typing import Final

from teraflock.bill.invoice.model import Invoice
from teraflock.bill.invoice.paper import InvoicePart, Paper, Printed, paper

_STYLE: Final = """
@page { size: A4; margin: 18mm 18mm 20mm;
  @bottom-right { content: counter(page) " / " counter(pages); font: 8pt sans-serif; color: #6b7480 } }
* { box-sizing: border-box }
html { background: #f3f5f7; -webkit-print-color-adjust: exact; print-color-adjust: exact }
body { font: 10pt/1.45 -apple-system, "Segoe UI", "Helvetica Neue", Arial, "Noto Sans", "Noto Sans CJK SC",
  "PingFang SC", "Microsoft YaHei", sans-serif; color: #1b1f24; background: #fff; margin: 10mm auto; max-width: 210mm;
  padding: 18mm; overflow-wrap: anywhere; box-shadow: 0 1px 4px #0002 }
header { display: flex; justify-content: space-between; gap: 10mm }
h1 { font-size: 24pt; line-height: 1.1; font-weight: 650; margin: 0 0 1mm; letter-spacing: -.015em }
address { font-style: normal; white-space: pre-line }
.issuer { text-align: right; max-width: 85mm }
.quiet { color: #6b7480 }
.facts { display: grid; grid-template-columns: 2fr 1fr 1.3fr 1fr; gap: 8mm; margin: 10mm 0 9mm; padding: 4.5mm 0;
  border-top: 1.5pt solid #1b1f24; border-bottom: .5pt solid #d5dbe1 }
h2, th { font-size: 7.5pt; font-weight: 600; text-transform: uppercase; letter-spacing: .07em; color: #6b7480 }
h2 { margin: 0 0 1mm }
.facts div { white-space: pre-line }
table { width: 100%; border-collapse: collapse }
th { text-align: left; border-bottom: .75pt solid #1b1f24; padding: 0 0 1.5mm }
td { padding: 2mm 0; border-bottom: .5pt solid #e6eaee; vertical-align: top }
.part td { font-weight: 600; padding-top: 6mm }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; padding-left: 6mm }
tr { break-inside: avoid }
.details { color: #6b7480; font-size: 9pt }
.sums { width: 86mm; margin: 5mm 0 0 auto; break-inside: avoid }
.sums td { border: 0; padding: .9mm 0 }
.sums .due td { border-top: 1.5pt solid #1b1f24; font-weight: 650; font-size: 12.5pt; padding-top: 2.5mm }
.sums tr:nth-last-child(2) td { padding-bottom: 2.5mm }
.annex { break-before: page; margin-top: 14mm }
footer { margin-top: 12mm; font-size: 8pt; max-width: 130mm; break-inside: avoid }
@media screen and (max-width: 700px) { body { padding: 6mm; margin: 0 } .facts { grid-template-columns: 1fr 1fr }
  header { flex-direction: column } .issuer { text-align: left } }
@media print { html { background: none } body { margin: 0; padding: 0; max-width: none; box-shadow: none } }
"""
_HEADS: Final = (
    '<thead><tr><th>Description</th><th class="number">Quantity</th><th class="number">Unit price</th>'
    '<th class="number">Amount</th></tr></thead>'
)


def page(invoice: Invoice, *, issuer: str) -> str:
    """The whole document. `issuer` is the provider's name and address, one part per line."""
    made = paper(invoice, issuer=issuer)
    facts = "\n".join(f"<div><h2>{head}</h2>{escape(text)}</div>" for head, text in made.facts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{made.title} {made.number}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<div><h1>{made.title}</h1><div class="quiet">{made.number}</div></div>
<div class="issuer"><strong>{escape(made.issuer)}</strong>
<address class="quiet">{escape(made.issuer_address)}</address></div>
</header>
<section class="facts">
{facts}
</section>
<table>
{_HEADS}
<tbody>
{"".join(map(_part, made.parts)) or '<tr><td colspan="4" class="quiet">Nothing was charged</td></tr>'}
</tbody>
</table>
<table class="sums">
{_sums(made)}
</table>
<footer class="quiet">{escape(made.note)}</footer>
{_annex(made)}</body>
</html>
"""


def _annex(made: Paper) -> str:
    if not made.annex:
        return ""
    rows = "".join(map(_part, made.annex))
    table = f"<table>{_HEADS}<tbody>{rows}</tbody></table>"
    return f'<section class="annex"><h2>Annex: details of each line</h2>{table}</section>\n'


def _part(part: InvoicePart) -> str:
    heading = f'<tr class="part"><td colspan="4">{escape(part.heading)}</td></tr>\n' if part.heading else ""
    return heading + "".join(map(_row, part.lines))


def _row(line: Printed) -> str:
    details = f'<div class="details">{escape(line.details)}</div>' if line.details else ""
    return (
        f"<tr><td>{escape(line.what)}{details}</td>"
        f'<td class="number">{escape(line.quantity)}</td><td class="number">{escape(line.unit_price)}</td>'
        f'<td class="number">{escape(line.amount)}</td></tr>\n'
    )


def _sums(made: Paper) -> str:
    rows = [("", each) for each in made.sums] + [(' class="due"', made.due)]
    return "\n".join(
        f'<tr{mark}><td>{escape(each.words)}</td><td class="number">{escape(each.amount)}</td></tr>'
        for mark, each in rows
    )
