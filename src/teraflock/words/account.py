"""Accounts at public clouds, and their orphans, as text."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from teraflock.base.money import amount_text
from teraflock.words.money import hourly_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import age_text

if TYPE_CHECKING:
    from teraflock.wire.account import AccountAnswer, AccountProjectAnswer, OrphanAnswer


def _limit(micros: int | None, currency: str) -> str:
    return "none" if micros is None else amount_text(micros, currency)


FIELDS: "Final[Fields[AccountAnswer]]" = (
    Field("ACCOUNT", lambda each: each.name, flexible=True),
    Field("PROVIDER", lambda each: each.provider),
    Field("STATE", lambda each: each.state),
    Field("INSTANCES", lambda each: str(each.instances), right=True, worth=4),
    Field("THIS MONTH", lambda each: amount_text(each.month_micros, each.currency), right=True),
    Field("LIMIT", lambda each: _limit(each.limit_micros, each.currency), right=True, worth=6),
    Field("PROJECTS", lambda each: str(len(each.projects)), right=True, worth=3),
    Field("PROBLEM", lambda each: each.problem, flexible=True, worth=5),
)
ORPHAN_FIELDS: "Final[Fields[OrphanAnswer]]" = (
    Field("KIND", lambda each: each.kind),
    Field("PROVIDER'S ID", lambda each: each.remote_id, flexible=True),
    Field("NAME", lambda each: each.name, flexible=True),
    Field(
        "COST PER HOUR",
        lambda each: amount_text(each.micros_per_hour, each.currency) if each.micros_per_hour else "",
        right=True,
    ),
)


def facts(account: "AccountAnswer", now: datetime) -> Iterator[tuple[str, str]]:
    yield "problem", account.problem
    yield "since", f"{age_text(account.since, now)} ago" if account.since else ""
    yield "provider", account.provider
    yield "credentials", account.secret_from or "stored encrypted"
    yield "options", ", ".join(f"{name}={value}" for name, value in account.options.items() if value)
    yield "instances", str(account.instances)
    yield "cost now", hourly_text(account.per_hour_micros, account.currency)
    yield "today", amount_text(account.today_micros, account.currency)
    yield "this month", amount_text(account.month_micros, account.currency)
    yield "limit per month", _limit(account.limit_micros, account.currency)
    for number, each in enumerate(account.projects):
        yield "" if number else "projects", _project(each, account.currency)


def _project(each: "AccountProjectAnswer", currency: str) -> str:
    spent, limit = amount_text(each.month_micros, currency), _limit(each.limit_micros, currency)
    return f"{each.project or each.project_id}: {spent} this month, limit {limit}"
