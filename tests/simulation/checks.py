"""Checks the accounts against the oracle, and by adding them up in every possible way."""

from collections import defaultdict
from fractions import Fraction

import msgspec
from tests.simulation.cloud import Cloud

from teraflock.bill.charge.rules import slices
from teraflock.bill.desk import Desk
from teraflock.bill.ledger import store as ledger_store
from teraflock.bill.service import SumBy
from teraflock.bill.verify.service import verify
from teraflock.meter import store as meter_store
from teraflock.meter.rules import latest

HOUR_US = 3600 * 10**6
TOTALS = {
    "events": "SELECT COUNT(*) FROM event",
    "charges": "SELECT COUNT(*) FROM charge",
    "reversals": "SELECT COUNT(*) FROM charge WHERE kind = 'reversal'",
    "entries": "SELECT COUNT(*) FROM ledger",
    "invoices": "SELECT COUNT(*) FROM invoice",
    "purchases": "SELECT COUNT(*) FROM purchase",
    "renewals": "SELECT COUNT(*) FROM purchase_term WHERE kind IN ('renewed', 'continued')",
    "upgrades": "SELECT COUNT(*) FROM purchase_term WHERE kind = 'upgraded'",
    "refunds": "SELECT COUNT(*) FROM charge WHERE kind = 'refund'",
    "days of traffic": "SELECT COUNT(*) FROM charge WHERE egress_micros > 0",
    "charges in the north": "SELECT COUNT(*) FROM charge WHERE region = 'north' AND micros > 0",
    "charges at the cloud": (
        "SELECT COUNT(*) FROM charge c JOIN host h ON h.id = c.host WHERE h.kind = 'rented' AND c.micros > 0"
    ),
    "stops of what was paid ahead": "SELECT COUNT(*) FROM budget_notice WHERE kind = 'stopped' AND level = 1",
    "budget stops": "SELECT COUNT(*) FROM event WHERE kind = 'budget.stopped'",
}


def check(cloud: Cloud) -> None:
    """Let the loops catch up and compare, before delayed events arrive and after."""
    cloud.database.live()
    if cloud.intake.late:
        check_while_late(cloud)
    late_percent, cloud.intake.late_percent = cloud.intake.late_percent, 0
    cloud.intake.arrive()
    _catch_up(cloud)
    cloud.intake.late_percent = late_percent
    verdict = verify(cloud.database)
    assert verdict.is_sound, verdict.faults[:5]
    assert verdict.changes_to_come == 0
    _compare(cloud)


def check_while_late(cloud: Cloud) -> None:
    """Compare while delayed events stay delayed: reported costs must still hold, because they are read from
    the events.

    Deleted instances are an exception: for them only events after the meter's cursor are read, to limit the
    search.
    """
    cloud.database.live()
    _catch_up(cloud)
    verdict = verify(cloud.database)
    assert verdict.is_sound, verdict.faults[:5]
    cloud.count["checks while late"] += bool(verdict.changes_to_come)
    costs(cloud, late=True)


def _catch_up(cloud: Cloud) -> None:
    bills = cloud.bills
    bills.meter.catch_up()
    bills.meter.sweep()
    bills.purchases.turn()
    bills.biller.catch_up()
    bills.host_costs.catch_up()
    cloud.learn_covers()
    balance(cloud)


def _compare(cloud: Cloud) -> None:
    costs(cloud)
    slicings(cloud)
    fees(cloud)
    balances(cloud)
    traffic(cloud)
    cloud.balancing.check()
    cloud.count["checks"] += 1
    with cloud.database.read() as tx:
        for words, sql in TOTALS.items():
            row = tx.one(sql)
            cloud.count[words] = int(row[0]) if row else 0


def balance(cloud: Cloud) -> None:
    with cloud.database.read() as tx:
        for currency, (debits, credits) in ledger_store.trial_balance(tx).items():
            assert debits == credits, currency


def costs(cloud: Cloud, *, late: bool = False) -> None:
    """Every instance costs what the oracle says, to the micro-unit, and every GPU microsecond is charged
    once."""
    by_project: dict[str, list[str]] = defaultdict(list)
    for id, life in cloud.oracle.lives.items():
        if not (late and life.phase == "gone"):
            by_project[life.project].append(id)
    sign = {"usage": 1, "reversal": -1}
    for project, ids in by_project.items():
        booked = cloud.bills.costs(cloud.id(project), ids)
        for id in ids:
            life, exact = cloud.oracle.lives[id], cloud.oracle.cost(id, cloud.now_us)
            assert booked[id].micros == exact, (id, life, booked[id].micros, exact)
            if life.open is None and not late:
                with cloud.database.read() as tx:
                    rows = tx.all(
                        "SELECT kind, gpus, until_us - from_us FROM charge WHERE subject = :id AND egress_micros = 0",
                        id=id,
                    )
                charged = sum(sign[kind] * gpus * us for kind, gpus, us in rows)
                assert charged == cloud.oracle.gpu_us(id, cloud.now_us), (id, life)
            if not life.stretches:
                assert booked[id].micros == 0, "an instance that never ran costs nothing"


def slicings(cloud: Cloud) -> None:
    with cloud.database.read() as tx:
        months = tx.all("SELECT DISTINCT project_id, month FROM charge ORDER BY project_id, month")
        revenue = {each.currency: -each.owed for each in ledger_store.accounts(tx) if each.name == "revenue"}
        by_currency: dict[str, int] = dict(
            tx.all("SELECT currency, SUM(micros) FROM charge WHERE currency <> '' GROUP BY currency")
        )
        by_day: dict[str, int] = dict(
            tx.all("SELECT currency, SUM(s) FROM (SELECT currency, from_us / 86400000000 AS day, SUM(micros) AS s"
                   " FROM charge WHERE currency <> '' GROUP BY currency, day) AS days GROUP BY currency")
        )  # fmt: skip
    assert {c: int(m) for c, m in by_currency.items() if m} == {c: m for c, m in revenue.items() if m}
    assert by_currency == by_day
    for project, month in months:
        bill = cloud.bills.bill(project, month, "gpu")
        others: tuple[SumBy, ...] = ("instance", "user", "label")
        for by in others:
            other = cloud.bills.bill(project, month, by, "team" if by == "label" else "")
            assert sum(group.micros for group in other.groups) == bill.micros
        assert sum(group.micros for group in bill.groups) == bill.micros
        with cloud.database.read() as tx:
            lines = tx.one(
                "SELECT SUM(micros) FROM charge WHERE project_id = :p AND month = :m", p=project, m=month
            )
        assert lines
        assert int(lines[0]) == bill.micros
    hours(cloud)


def hours(cloud: Cloud) -> None:
    """Intervals cut at every hour cost the same as whole ones, and no hour changes an earlier one."""
    with cloud.database.read() as tx:
        desk = Desk(tx)
        for id in list(cloud.oracle.lives)[-3:]:
            for interval in latest(meter_store.intervals_of(tx, id))[-3:]:
                tariff, covers = desk.tariff(interval.project_id), desk.covers(id)
                whole = sum(sum(each.amounts) - each.amounts.minimum - each.amounts.egress
                            for each in slices(interval, interval.until_us, tariff, covers))  # fmt: skip
                open_end = msgspec.structs.replace(interval, until_us=1 << 62)
                done = 0
                cuts = range(
                    interval.from_us - interval.from_us % HOUR_US + HOUR_US, interval.until_us, HOUR_US
                )
                for cut in [*list(cuts)[:50], interval.until_us]:
                    so_far = sum(sum(each.amounts) for each in slices(open_end, cut, tariff, covers))
                    assert so_far >= done
                    done = so_far
                assert done == whole


def fees(cloud: Cloud) -> None:
    """Every month costs what the prices of its day say, and terms follow each other without a gap."""
    with cloud.database.read() as tx:
        rows = tx.all(
            "SELECT p.project_id, p.years, p.upfront, t.purchase_id, t.kind, t.from_us, t.until_us, c.region, t.gpu,"
            " t.gpus, t.vcpus, t.ram_bytes, t.disk_bytes, t.month_micros, t.fee_micros FROM purchase_term t"
            " JOIN purchase p ON p.id = t.purchase_id LEFT JOIN charge c ON c.subject = p.id"
            " AND c.sequence = t.sequence ORDER BY t.purchase_id, t.sequence"
        )
        charged: dict[str, int] = dict(
            tx.all("SELECT subject, SUM(micros) FROM charge WHERE kind IN ('fee', 'refund') GROUP BY subject")
        )
    paid: dict[str, int] = defaultdict(int)
    until: dict[str, int] = {}
    whole: dict[str, int] = {}
    months: dict[str, int] = {}
    for project, years, upfront, id, kind, from_us, until_us, region, gpu, *amounts, month, fee in rows:
        paid[id] += fee
        if kind in ("renewed", "continued"):
            assert from_us == until[id], "a term begins where the previous one ended"
        if kind in ("bought", "renewed", "upgraded"):
            places = ("home", "north") if region is None else (region,)  # a charge of zero has no region
            expected = [
                each
                for place in places
                for each in _months(cloud, cloud.names[project], from_us, place, gpu, amounts, years)
            ]
            before = months.get(id, 0) if kind == "upgraded" else 0
            assert month in [max(each, before) for each in expected], (id, kind, month, expected)
        elif kind == "continued":
            assert month == months[id]
        if kind in ("bought", "renewed", "continued"):
            whole[id] = from_us
            assert fee == (round(Fraction(month * 12 * years * 95, 100)) if upfront else month)
        else:  # by the microsecond, from the rest of the last fee that was paid in full
            left = Fraction(max(0, until[id] - from_us), until[id] - whole[id])
            more = (month - months[id]) * (12 * years if upfront else 1)
            assert fee == round(more * left if kind == "upgraded" else -months[id] * left / 2), (id, kind)
        until[id], months[id] = until_us, month
    assert {id: m for id, m in paid.items() if m} == {id: int(m) for id, m in charged.items() if m}


def _months(
    cloud: Cloud, project: str, us: int, region: str, gpu: str, amounts: list[int], years: int
) -> list[int]:
    """Return the possible prices of a month bought at a time. A price book imported at that moment may or may
    not apply."""
    before = [price for price in cloud.oracle.prices if price.from_us < us][-1:]
    made = []
    for price in before + [price for price in cloud.oracle.prices if price.from_us == us]:
        units = [price.unit(part, gpu, "monthly", project, region) for part in ("gpu", "vcpu", "ram", "disk")]
        scales = (1, 1, 1 << 30, 1 << 30)
        exact = sum(Fraction(u * q, s) for u, q, s in zip(units, amounts, scales, strict=True))
        made.append(round(exact * Fraction(75 if years else 100, 100)))
    return made


def balances(cloud: Cloud) -> None:
    """A project owes all charges and tax, less credits used and payments."""
    with cloud.database.read() as tx:
        accounts = {account.name: account.owed for account in ledger_store.accounts(tx)}
        charged: dict[str, int] = dict(
            tx.all("SELECT project_id, SUM(micros) FROM charge GROUP BY project_id")
        )
        taxed: dict[str, int] = dict(
            tx.all("SELECT project_id, SUM(tax_micros) FROM invoice GROUP BY project_id")
        )
        grants = tx.all(
            "SELECT project_id, SUM(micros), SUM(drawn_micros) FROM credit_grant GROUP BY project_id"
        )
    credits = {row[0]: (int(row[1]), int(row[2])) for row in grants}
    for name, project in cloud.projects.items():
        stands = accounts.get(f"project/{project.id}", 0) + accounts.get(f"balance/{project.id}", 0)
        given, used = credits.get(project.id, (0, 0))
        due = int(charged.get(project.id) or 0) + int(taxed.get(project.id) or 0)
        assert given == cloud.given[name], name
        assert stands == due - used - cloud.paid[name], (name, stands, due, used, cloud.paid[name])


def traffic(cloud: Cloud) -> None:
    """No more traffic is read than was sent."""
    for id, life in cloud.oracle.lives.items():
        read = sum(each.sent_bytes for each in life.sent)
        assert read <= cloud.sent_bytes[id], (id, read, cloud.sent_bytes[id])
