"""Offers: search prices of all providers, compare them, add up what a number of hours costs, and see the history."""

from datetime import date
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from teraflock.base.errors import TeraflockError
from teraflock.base.money import HOURS_PER_MONTH, decimal_text, micros_per
from teraflock.base.quantities import GIB, memory_text
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.renting import launch_links
from teraflock.console.request import Form
from teraflock.offer.model import MODES, SORTS
from teraflock.offer.rules import first_day
from teraflock.offer.words import PERIODS, OfferWords
from teraflock.plan.calculator import for_hours
from teraflock.tenant.admission import Scope
from teraflock.wire.offer import OfferShape

pages = Pages()
ROWS: Final = 50
ROWS_MAX: Final = 500
COMPARED_MAX: Final = 4
CURRENCIES: Final = ("USD", "EUR", "CNY")
CALCULATED: Final = ("on-demand", "spot", "monthly", "reserved")
TEXTS: Final = ("count", "memory_min", "memory_total_min", "vcpu_min", "ram_min", "price_max")
LISTS: Final = ("gpu", "provider", "region", "mode")


class OfferRow(msgspec.Struct, frozen=True, kw_only=True):
    """An offer with everything that the table and the comparison show."""

    offer: OfferShape
    gpus: str
    month_micros: int | None
    per_tflops_micros: int | None
    per_gb_micros: int | None
    memory: str
    age_days: int | None
    packed: str
    """What the comparison in the browser needs, as JSON."""


@pages.get("/offers", scope=Scope.KEY)
def list_offers(call: PageCall) -> Answer:
    """All offers, cheapest first."""
    cards = sorted({each.family for each in call.client.gpus.list()} | {"none"})
    providers = call.client.providers.list()
    return call.page(
        "offers/list.html",
        section="offers",
        cards=cards,
        providers=providers,
        modes=MODES,
        sorts=SORTS,
        periods=PERIODS,
        currencies=CURRENCIES,
        compared_max=COMPARED_MAX,
        **_found(call),
    )


@pages.get("/offers/rows", scope=Scope.KEY)
def list_offer_rows(call: PageCall) -> Answer:
    """The offers that pass the filters, asked for again when one changes."""
    part = call.part("offers/rows.html", **_found(call))
    return msgspec.structs.replace(
        part, headers={"HX-Replace-Url": link_of(call.at("offers"), call.request.query)}
    )


@pages.get("/offers/calculator", scope=Scope.KEY)
def calculate_offers(call: PageCall) -> Answer:
    """What a number of GPUs costs for a number of hours, in each purchase mode."""
    totals: list[dict[str, Any]] = []
    hours, asked = 0, words_of(call.request.query)
    try:
        hours = call.request.query.number("hours") or 0
        for mode in CALCULATED if hours and asked.gpu else ():
            totals += _total(call, msgspec.structs.replace(asked, mode=(mode,), sort="price"), mode, hours)
    except TeraflockError as error:
        call.error = error
    least = min((each["micros"] for each in totals), default=0)
    return call.part("offers/calculator.html", totals=totals, hours=hours, asked=asked, least=least)


@pages.get("/offers/history", scope=Scope.KEY)
def show_price_history(call: PageCall) -> Answer:
    """The price of a GPU-hour by day, as data for a chart."""
    words = words_of(call.request.query)
    found = call.client.offers.history(words) if words.gpu else ()
    body = {
        "currency": found[0].currency if found else words.currency,
        "points": [(each.day, each.lowest_micros, each.median_micros, each.highest_micros) for each in found],
    }
    return Answer(body=msgspec.json.encode(body), media_type="application/json")


def link_of(address: str, form: Form) -> str:
    """The address of a page with the filled fields of its form, so that it can be shared."""
    filled = [(name, value) for name, value in form if value and name != "csrf"]
    return f"{address}?{urlencode(filled)}" if filled else address


def words_of(query: Form) -> OfferWords:
    """The filters of the form, as the API takes them. Several names in one field are separated by commas."""
    lists: dict[str, Any] = {name: _names(query, name) for name in LISTS}
    texts: dict[str, Any] = {name: query.text(name) or None for name in TEXTS}
    return OfferWords(
        **lists,
        **texts,
        sort=query.text("sort") or "price",
        per=query.text("per") or "hour",
        currency=query.text("currency") or "USD",
    )


def _names(query: Form, name: str) -> tuple[str, ...]:
    return tuple(word.strip() for value in query.many(name) for word in value.split(",") if word.strip())


def _found(call: PageCall) -> dict[str, Any]:
    query = call.request.query
    rows: list[OfferRow] = []
    asked, limit, is_cut = OfferWords(), ROWS, False
    try:
        asked = words_of(query)
        limit = min(query.number("limit") or ROWS, ROWS_MAX)
        found = call.client.offers.list(asked, limit=limit + 1)
        is_cut = len(found) > limit
        rows = [_row(each, call.now.date()) for each in found[:limit]]
    except TeraflockError as error:
        call.error, call.status = error, 200 if call.request.is_part else 422
    return {
        "rows": rows,
        "launches": launch_links(call, (each.offer for each in rows)),
        "asked": asked,
        "filled": query,
        "limit": limit,
        "is_cut": is_cut,
        "rows_max": ROWS_MAX,
    }


def _row(offer: OfferShape, today: date) -> OfferRow:
    hour = _hour(offer)
    count = offer.gpu_count or 0
    tflops = (offer.gpu_fp32_tflops or 0) * count
    memory = offer.gpu_memory_total_bytes
    row = OfferRow(
        offer=offer,
        gpus=gpus_text(offer),
        month_micros=None if hour is None else hour * HOURS_PER_MONTH,
        per_tflops_micros=round(hour / tflops) if hour is not None and tflops else None,
        per_gb_micros=round(hour * GIB / memory) if hour is not None and memory else None,
        memory=memory_text(memory) if memory else "",
        age_days=(today - date.fromisoformat(first_day(offer.as_of))).days if offer.as_of else None,
        packed="",
    )
    return msgspec.structs.replace(row, packed=_packed(row))


def gpus_text(offer: OfferShape) -> str:
    name = offer.gpu or offer.gpu_name
    if not name or offer.gpu_count == 0:
        return ""
    share = f" ({offer.gpu_share:g})" if offer.gpu_share != 1 else ""
    return f"{offer.gpu_count or '?'}× {name}{share}"


def _hour(offer: OfferShape) -> int | None:
    if offer.price_micros is None or offer.per == "hour":
        return offer.price_micros
    return micros_per(offer.price_micros, "hour")


def _packed(row: OfferRow) -> str:
    offer = row.offer
    ram = memory_text(offer.ram_bytes) if offer.ram_bytes else ""
    money = partial(_money, offer.currency)
    cells = (
        offer.provider, row.gpus, offer.instance_type, offer.region.replace("|", ", "), offer.mode or "", row.memory,
        "" if offer.vcpus is None else f"{offer.vcpus:g}", ram, money(_hour(offer), 4), money(row.month_micros, 2),
        money(row.per_tflops_micros, 4), money(row.per_gb_micros, 4), offer.as_of, offer.source,
        ", ".join(offer.flags),
    )  # fmt: skip
    return msgspec.json.encode({"id": offer.id, "cells": cells}).decode()


def _money(currency: str, micros: int | None, decimals: int) -> str:
    return "" if micros is None else f"{decimal_text(micros, decimals)} {currency}"


def _total(call: PageCall, asked: OfferWords, mode: str, hours: int) -> list[dict[str, Any]]:
    """The cheapest offer of a mode. Empty if there is none."""
    words = msgspec.structs.replace(asked, per="month")
    offer = next(iter(call.client.offers.list(words, limit=1)), None)
    if offer is None or offer.price_micros is None:
        return []
    total = for_hours(offer.price_micros, mode, hours, offer.term_months)
    return [
        {
            "mode": mode,
            "offer": offer,
            "gpus": gpus_text(offer),
            "micros": total.micros,
            "months": total.months,
        }
    ]
