"""Parse amounts of money and large numbers as people write them: `$100`, `100 EUR`, `1,000`, `1.28M`.

Pure. An amount without a currency is in the currency of the request. A symbol that several currencies share is an
error, because a wrong guess would be off by a factor.
"""

import re
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.base.money import Money, parse_micros

SYMBOLS: Final = {
    "$": "USD", "US$": "USD", "€": "EUR", "£": "GBP", "₹": "INR", "₩": "KRW", "元": "CNY", "RMB": "CNY", "CN¥": "CNY",
    "JP¥": "JPY", "円": "JPY", "A$": "AUD", "C$": "CAD", "HK$": "HKD", "NT$": "TWD", "S$": "SGD", "R$": "BRL",
    "₪": "ILS", "฿": "THB", "₺": "TRY",
}  # fmt: skip
SHARED_SYMBOLS: Final = {"¥": "`CNY` or `JPY`", "￥": "`CNY` or `JPY`", "kr": "`SEK`, `NOK` or `DKK`"}

_NUMBER: Final = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,60}(?:\.\d+)?|\.\d+"
_AMOUNT: Final = re.compile(
    rf"(?P<before>[^\s\d.,+-]*)\s*(?P<number>{_NUMBER})(?:(?P<scale>[kKM])(?![A-Za-z]))?\s*(?P<after>[^\s\d.,+-]*)",
    re.ASCII,
)
_LARGE: Final = re.compile(
    rf"(?P<number>(?:{_NUMBER})(?:e\+?\d{{1,2}})?)\s*(?P<scale>[kmbt]?)", re.ASCII | re.I
)
_SCALES: Final = {"": 0, "k": 3, "m": 6, "b": 9, "t": 12}


def parse_money(text: str, currency: str) -> Money:
    """`"$100"` → 100 USD; `"100"` → 100 of `currency`. The currency in the text may be unknown to the caller."""
    match = _AMOUNT.fullmatch(text.strip())
    if text.strip().startswith("-"):
        raise BadInput(f"The amount `{text}` is negative", hint="Give an amount of 0 or more")
    if not match or (match["before"] and match["after"]):
        raise _not_money(text)
    sign = match["before"] or match["after"]
    if sign in SHARED_SYMBOLS:
        raise BadInput(
            f"`{sign}` stands for several currencies",
            hint=f"Write the code instead: {SHARED_SYMBOLS[sign]}",
        )
    code = SYMBOLS.get(sign) or SYMBOLS.get(sign.upper()) or sign.upper() or currency
    if not (len(code) == 3 and code.isascii() and code.isalpha()):
        raise _not_money(text)
    return Money(_micros(match["number"], match["scale"] or ""), code)


def parse_large_number(text: str, option: str) -> float:
    """`"1.28M"` → 1280000.0. The scales are k, M, B and T; `1e6` and `1,281,167` work too."""
    match = _LARGE.fullmatch(text.strip())
    if not match:
        raise BadInput(
            f"`--{option} {text}` is not a number",
            hint="Write it as `1281167`, `1,281,167`, `1.28M` or `500k`",
        )
    return float(f"{match['number'].replace(',', '')}") * 10.0 ** _SCALES[match["scale"].lower()]


def _micros(number: str, scale: str) -> int:
    return parse_micros(number.replace(",", "")) * int(10 ** _SCALES[scale.lower()])


def _not_money(text: str) -> BadInput:
    return BadInput(
        f"`{text}` is not an amount of money",
        hint="Write it as `100`, `$100`, `100 EUR` or `1,000.50`; a point separates the decimals",
    )
