"""What an instance cost, day by day, as data for a chart."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

import msgspec

from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.instance import InstanceAnswer

pages = Pages()
MONTHS_MAX: Final = 3
"""How far back the chart goes."""
LINES_MAX: Final = 200


@pages.get(
    "/projects/{project}/instances/{instance}/costs", scope=Scope.PROJECT, may=Permission.INSTANCE_READ
)
def show_daily_costs(call: PageCall) -> Answer:
    """The charges of each day in millionths, and today's part that is not booked yet."""
    instance = call.client.instances.get(call.path["instance"])
    days: dict[date, int] = defaultdict(int)
    currency, booked = "", 0
    if call.may(Permission.USAGE_READ):
        for month in months_of(instance, call.now):
            for line in call.client.bills.line_page(month=month, instance=instance.id, limit=LINES_MAX).items:
                days[line.starts_at.astimezone(UTC).date()] += line.micros
                currency, booked = line.currency, booked + line.micros
        cost = next(iter(call.client.bills.cost_page(name=instance.name, limit=1).items), None)
        if cost and cost.is_priced and _is_whole(instance, call.now):
            currency = cost.currency
            days[call.now.date()] += max(0, cost.micros - booked)
    body = {"currency": currency, "days": [[day.isoformat(), days[day]] for day in sorted(days)]}
    return Answer(body=msgspec.json.encode(body), media_type="application/json")


def months_of(instance: InstanceAnswer, now: datetime) -> Iterator[str]:
    """The last months of its life, oldest first: `2026-10`, `2026-11`."""
    found: list[str] = []
    at = now
    while len(found) < MONTHS_MAX and (at.year, at.month) >= (
        instance.created_at.year,
        instance.created_at.month,
    ):
        found.append(f"{at:%Y-%m}")
        at = at.replace(day=1) - timedelta(days=1)
    return reversed(found)


def _is_whole(instance: InstanceAnswer, now: datetime) -> bool:
    """Whether the months of the chart cover its whole life: only then the rest of its cost is of today."""
    return next(months_of(instance, now), "") == f"{instance.created_at:%Y-%m}"
