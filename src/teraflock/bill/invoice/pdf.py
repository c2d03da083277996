"""Renders an invoice as a PDF: A4, with embedded fonts. The same invoice always gives the same bytes.

fpdf2 takes half a second to load, so callers import this module only when they need it. Characters that our fonts lack
are refused with an error: an invoice with boxes in an address is worse than none. The HTML page can show them.
"""

import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec
from fpdf import FPDF
from fpdf.enums import Align, MethodReturnValue, XPos, YPos
from fpdf.fonts import TTFFont

from teraflock.base.errors import Refused
from teraflock.bill.invoice.model import Invoice
from teraflock.bill.invoice.paper import InvoicePart, InvoiceSum, Paper, Printed, paper
from teraflock.bill.times import moment

FONTS: Final = Path(__file__).parent / "fonts"
MARGIN: Final = 18.0
WIDTH: Final = 210.0 - 2 * MARGIN
FOOT: Final = 20.0
QUANTITY, PRICE, AMOUNT, GAP = 24.0, 32.0, 32.0, 4.0
WHAT: Final = WIDTH - QUANTITY - PRICE - AMOUNT - GAP
SUMS: Final = 86.0
INK, QUIET, RULE, FINE = (27, 31, 36), (107, 116, 128), (213, 219, 225), (230, 234, 238)
_BLANKS: Final = frozenset("\n\u00a0 ")


def pdf(invoice: Invoice, *, issuer: str) -> bytes:
    """`issuer` is the provider's name and address, one part per line."""
    made = _normal(paper(invoice, issuer=issuer))
    sheet = _Sheet(made)
    try:
        sheet.take_letters(_texts(made))
        sheet.set_creation_date(moment(invoice.issued_at_us))
        sheet.add_page()
        _head(sheet, made)
        _facts(sheet, made)
        _table(sheet, made)
        _sums(sheet, made)
        _note(sheet, made.note)
        if made.annex:
            _annex(sheet, made.annex)
        return bytes(sheet.output())
    finally:
        sheet.close_fonts()


class _Sheet(FPDF):
    def __init__(self, made: Paper) -> None:
        super().__init__(format="A4")
        self.title_text = f"{made.title} {made.number}"
        self.set_title(self.title_text)
        self.set_author(made.issuer)
        self.set_creator("Teraflock")
        self.set_producer("Teraflock")
        self.set_lang("en")
        self.set_margins(MARGIN, MARGIN, MARGIN)
        self.c_margin = 0
        self.set_auto_page_break(True, FOOT)
        self._load("sans", "", "DejaVuSans.ttf")
        self._load("sans", "B", "DejaVuSans-Bold.ttf")

    def take_letters(self, texts: Iterable[str]) -> None:
        """Load the font for Chinese and Japanese if needed, and refuse characters that no font has."""
        lacking = self._lacking("sans", set("".join(texts)) - _BLANKS)
        if not lacking:
            return
        self._load("han", "", "DroidSansFallback.ttf")
        self.set_fallback_fonts(["han"], exact_match=False)
        if lacking := self._lacking("han", lacking):
            raise Refused(
                f"The PDF fonts do not have these characters: `{' '.join(sorted(lacking)[:8])}`",
                hint="Print the HTML page instead: `tera invoice show MONTH --out FILE`",
            )

    def close_fonts(self) -> None:
        """Close the font files, which are in use until the PDF is complete."""
        for font in self.fonts.values():
            if isinstance(font, TTFFont):
                font.ttfont.close()

    def _load(self, family: str, style: Literal["", "B"], file: str) -> None:
        self.add_font(family, style, FONTS / file)

    def _lacking(self, family: str, letters: set[str]) -> set[str]:
        font = self.fonts[family]
        assert isinstance(font, TTFFont)
        return {each for each in letters if ord(each) not in font.cmap}

    def words(self, size: float, *, bold: bool = False, colour: tuple[int, int, int] = INK) -> None:
        self.set_font("sans", "B" if bold else "", size)
        self.set_text_color(*colour)

    def text_at(
        self, x: float, y: float, width: float, text: str, line: float, *, align: Align = Align.L
    ) -> float:
        """Write within a width and return where the text ends."""
        self.set_xy(x, y)
        self.multi_cell(width, line, text, align=align, padding=0, new_x=XPos.LEFT, new_y=YPos.NEXT)
        return self.get_y()

    def height(self, width: float, text: str, line: float) -> float:
        if not text:
            return 0.0
        found = self.multi_cell(width, line, text, dry_run=True, output=MethodReturnValue.HEIGHT)
        assert isinstance(found, float | int)
        return float(found)

    def rule(self, y: float, thick: float, colour: tuple[int, int, int], x: float = MARGIN) -> None:
        self.set_draw_color(*colour)
        self.set_line_width(thick)
        self.line(x, y, 210 - MARGIN, y)

    def room(self, height: float) -> bool:
        return self.get_y() + height <= self.h - FOOT

    def footer(self) -> None:
        self.set_y(-13)
        self.words(7.5, colour=QUIET)
        self.cell(WIDTH, 4, f"{self.title_text}   ·   page {self.page_no()} of {{nb}}")


def _head(sheet: _Sheet, made: Paper) -> None:
    sheet.words(23, bold=True)
    left = sheet.text_at(MARGIN, MARGIN, WIDTH / 2, made.title, 10)
    sheet.words(10, colour=QUIET)
    left = sheet.text_at(MARGIN, left + 0.5, WIDTH / 2, made.number, 5)
    sheet.words(10, bold=True)
    x, width = MARGIN + WIDTH / 2, WIDTH / 2
    right = sheet.text_at(x, MARGIN + 1.5, width, made.issuer, 5, align=Align.R)
    sheet.words(9, colour=QUIET)
    if made.issuer_address:
        right = sheet.text_at(x, right, width, made.issuer_address, 4.6, align=Align.R)
    sheet.set_y(max(left, right) + 8)


def _facts(sheet: _Sheet, made: Paper) -> None:
    sheet.rule(sheet.get_y(), 0.5, INK)
    top, bottom, x = sheet.get_y() + 4.5, 0.0, MARGIN
    for (heading, text), share in zip(made.facts, (0.36, 0.20, 0.24, 0.20), strict=True):
        width = WIDTH * share - GAP
        sheet.words(6.5, bold=True, colour=QUIET)
        under = sheet.text_at(x, top, width, heading.upper(), 4)
        first, _, rest = text.partition("\n")
        sheet.words(9)
        under = sheet.text_at(x, under, width, first, 4.6)
        if rest:
            sheet.words(9, colour=QUIET if heading in ("Period", "Issued") else INK)
            under = sheet.text_at(x, under, width, rest, 4.6)
        bottom, x = max(bottom, under), x + WIDTH * share
    sheet.rule(bottom + 4.5, 0.15, RULE)
    sheet.set_y(bottom + 12)


def _table(sheet: _Sheet, made: Paper) -> None:
    _table_head(sheet)
    if not made.parts:
        sheet.words(9, colour=QUIET)
        sheet.set_y(sheet.text_at(MARGIN, sheet.get_y() + 2, WIDTH, "Nothing was charged", 5))
    _lines(sheet, made.parts)


def _lines(sheet: _Sheet, parts: Iterable[InvoicePart]) -> None:
    for part in parts:
        if part.heading:
            _part_head(sheet, part)
        for line in part.lines:
            _line(sheet, line)


def _annex(sheet: _Sheet, parts: Iterable[InvoicePart]) -> None:
    """The annex starts on a new page."""
    sheet.add_page()
    sheet.words(12, bold=True)
    sheet.set_y(sheet.text_at(MARGIN, MARGIN, WIDTH, "Annex: details of each line", 6) + 6)
    _table_head(sheet)
    _lines(sheet, parts)


def _table_head(sheet: _Sheet) -> None:
    y = sheet.get_y()
    sheet.words(6.5, bold=True, colour=QUIET)
    sheet.text_at(MARGIN, y, WHAT, "DESCRIPTION", 4)
    sheet.text_at(MARGIN + WHAT + GAP, y, QUANTITY, "QUANTITY", 4, align=Align.R)
    sheet.text_at(MARGIN + WHAT + GAP + QUANTITY, y, PRICE, "UNIT PRICE", 4, align=Align.R)
    sheet.text_at(MARGIN + WIDTH - AMOUNT, y, AMOUNT, "AMOUNT", 4, align=Align.R)
    sheet.rule(y + 5.5, 0.25, INK)
    sheet.set_y(y + 5.5)


def _part_head(sheet: _Sheet, part: InvoicePart) -> None:
    _next_page_unless(sheet, 26)
    sheet.words(9, bold=True)
    sheet.set_y(sheet.text_at(MARGIN, sheet.get_y() + 5, WIDTH, part.heading, 5) + 1)
    sheet.rule(sheet.get_y(), 0.15, FINE)


def _line(sheet: _Sheet, line: Printed) -> None:
    sheet.words(9)
    height = sheet.height(WHAT, line.what, 4.6)
    sheet.words(8)
    height += sheet.height(WHAT, line.details, 4.2)
    _next_page_unless(sheet, height + 4)
    y = sheet.get_y() + 2
    sheet.words(9)
    sheet.text_at(MARGIN + WHAT + GAP, y, QUANTITY, line.quantity, 4.6, align=Align.R)
    if line.unit_price:
        sheet.text_at(MARGIN + WHAT + GAP + QUANTITY, y, PRICE, line.unit_price, 4.6, align=Align.R)
    sheet.text_at(MARGIN + WIDTH - AMOUNT, y, AMOUNT, line.amount, 4.6, align=Align.R)
    end = sheet.text_at(MARGIN, y, WHAT, line.what, 4.6)
    if line.details:
        sheet.words(8, colour=QUIET)
        end = sheet.text_at(MARGIN, end, WHAT, line.details, 4.2)
    sheet.rule(end + 2, 0.15, FINE)
    sheet.set_y(end + 2)


def _next_page_unless(sheet: _Sheet, height: float) -> None:
    """Keep related lines on one page, and repeat the column headings on every page."""
    if not sheet.room(height):
        sheet.add_page()
        _table_head(sheet)


def _sums(sheet: _Sheet, made: Paper) -> None:
    if not sheet.room(20 + 6 * len(made.sums)):
        sheet.add_page()
    sheet.set_y(sheet.get_y() + 5)
    for each in made.sums:
        _sum(sheet, each, 9, 6)
    sheet.rule(sheet.get_y() + 1.5, 0.5, INK, 210 - MARGIN - SUMS)
    sheet.set_y(sheet.get_y() + 4)
    _sum(sheet, made.due, 12, 7, bold=True)


def _sum(sheet: _Sheet, each: InvoiceSum, size: float, line: float, *, bold: bool = False) -> None:
    y, x = sheet.get_y(), 210 - MARGIN - SUMS
    sheet.words(size, bold=bold)
    sheet.text_at(x, y, SUMS, each.amount, line, align=Align.R)
    taken = sheet.get_string_width(each.amount) + GAP
    sheet.set_y(sheet.text_at(x, y, SUMS - taken, each.words, line))


def _note(sheet: _Sheet, note: str) -> None:
    sheet.words(7.5, colour=QUIET)
    if not sheet.room(24):
        sheet.add_page()
    sheet.text_at(MARGIN, sheet.get_y() + 12, 130, note, 3.9)


def _normal(made: Paper) -> Paper:
    """Combine letters and their accents, as the fonts expect."""
    text = unicodedata.normalize("NFC", msgspec.json.encode(made).decode())
    return msgspec.json.decode(text, type=Paper)


def _texts(made: Paper) -> Iterable[str]:
    yield from (made.title, made.number, made.issuer, made.issuer_address, made.note)
    yield from (text for _, text in made.facts)
    for part in (*made.parts, *made.annex):
        yield part.heading
        for line in part.lines:
            yield from (line.what, line.details, line.quantity, line.unit_price, line.amount)
    for each in (*made.sums, made.due):
        yield from (each.words, each.amount)
