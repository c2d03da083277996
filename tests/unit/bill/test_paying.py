"""Credits, balances, budgets and purchases: what pays for usage, when, and which notices come first."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.bill.world import BOOK, OTHER_PROJECT, PROJECT, RATES, START, World

from teraflock.base.errors import Conflict, NotFound, Refused
from teraflock.base.size import Size
from teraflock.bill.budget.admission import BudgetReached, check_launch
from teraflock.bill.budget.model import Budget, Purse, Told
from teraflock.bill.budget.rules import LOOK_SECONDS, LOOK_US, decide
from teraflock.bill.credit.model import Grant
from teraflock.bill.credit.rules import Due, pay
from teraflock.bill.service import BillService
from teraflock.bill.store import Profile
from teraflock.bill.times import microseconds, moment, months_later
from teraflock.bill.verify.service import verify
from teraflock.instance.states import Phase
from teraflock.meter.model import Holding
from teraflock.tenant.model import ProjectId

DAY = timedelta(days=1)


class Bills:
    """A world with prices and the services of its bills."""

    def __init__(self) -> None:
        self.world = World()
        self.stopped: list[str] = []
        self._made = 1 << 36
        self.bills = BillService(
            self.world.database, self.world.clock, RATES, self._random, self.stopped.append
        )
        self.bills.prices.take(BOOK, name="book", member="mem_1")

    def _random(self, count: int) -> bytes:
        self._made += 1
        return self._made.to_bytes(count, "big")

    def run(self, instance: str = "ins_1", **details: object) -> None:
        for phase in (Phase.QUEUED, Phase.STARTING, Phase.RUNNING):
            self.world.move(instance, phase, **details)
        self.bills.meter.catch_up()

    def check_launch(self, project: ProjectId) -> None:
        with self.world.database.read() as tx:
            check_launch(tx, project, self.world.now_us)

    def check(self) -> None:
        verdict = self.bills.verify()
        assert verdict.faults == ()


@pytest.fixture
def books() -> Bills:
    return Bills()


# -- credits -----------------------------------------------------------------------------------------------------------

GRANTS = st.lists(
    st.tuples(st.integers(1, 1000), st.integers(0, 20), st.integers(1, 20)), max_size=5
).map(
    lambda rows: [
        Grant(id=f"crd_{index}", project_id=ProjectId("prj"), reason="", currency="USD", micros=micros, from_us=start,
              expires_us=start + length)
        for index, (micros, start, length) in enumerate(rows)
    ]
)  # fmt: skip
DUES = st.lists(st.tuples(st.integers(0, 30), st.integers(-800, 1000)), max_size=8)


@given(grants=GRANTS, dues=DUES, balance=st.one_of(st.none(), st.integers(0, 2000)))
def test_every_payment_has_a_source(
    grants: list[Grant], dues: list[tuple[int, int]], balance: int | None
) -> None:
    owed = [Due(at, "2026-01", micros) for at, micros in dues]
    paid = pay(ProjectId("prj"), "USD", owed, grants, balance, 1)
    after = {grant.id: grant for grant in grants} | {grant.id: grant for grant in paid.grants}
    for grant in after.values():
        assert 0 <= grant.drawn_micros <= grant.micros
    net = sum(each.micros if each.credit == "project/prj" else -each.micros for each in paid.entries)
    drawn = sum(grant.drawn_micros for grant in after.values())
    from_balance = net - drawn
    if balance is None:
        assert from_balance == 0
    else:
        assert from_balance <= balance + sum(-micros for _, micros in dues if micros < 0)
    keys = [(entry.subject, entry.sequence, entry.kind) for entry in paid.entries]
    assert len(set(keys)) == len(keys)


def test_the_credit_that_expires_first_pays_first_and_only_for_its_days(books: Bills) -> None:
    credits = books.bills.credits
    late = credits.grant(PROJECT, 10**9, "gift", START + 60 * DAY)
    soon = credits.grant(PROJECT, 30_000_000, "sign-up", START + DAY)
    books.run()
    books.world.wait(hours=24 * 5)
    books.world.book()
    grants = {grant.id: grant for grant in credits.grants(PROJECT)}
    assert grants[soon.id].drawn_micros == 30_000_000
    assert grants[late.id].drawn_micros == books.world.charged() - 30_000_000
    assert grants[soon.id].expired
    _, _, owed = books.bills.standing(PROJECT)
    assert owed == 0
    books.check()


# -- budgets -----------------------------------------------------------------------------------------------------------


@given(
    limit=st.integers(1, 10**9),
    per_look=st.integers(1, 10**7),
    notice=st.integers(0, 7200),
    spent=st.integers(0, 10**9),
)
def test_a_budget_is_exceeded_by_one_step_at_most_and_warns_before_a_stop(
    limit: int, per_look: int, notice: int, spent: int
) -> None:
    """Looked at from some time on, with whatever is spent by then: as if the rate had just risen."""
    budget = Budget(
        project_id=ProjectId("prj"), currency="USD", micros=limit, hard_stop=True, notice_seconds=notice
    )
    told, now_us, at_start = Told(), 0, spent
    for _ in range(1_000):
        purse = Purse(
            limit_micros=limit, spent_micros=spent, committed_micros=spent, micros_per_hour=per_look * 120
        )
        decision = decide(budget, purse, told, now_us=now_us)
        if decision.announces:
            told = Told(levels=told.levels, announced_us=now_us, announced_limit_micros=limit)
        if decision.stops:
            break
        looks_left = (limit - spent) // per_look
        now_us += LOOK_US
        spent += per_look * max(1, looks_left - 500)  # nothing happens so far ahead
    else:
        raise AssertionError("never stopped")
    assert told.announced_us is not None
    assert told.announced_us < now_us
    if at_start + per_look <= limit:
        assert spent <= limit, "seen in time, it is not passed at all"
    assert spent - max(limit, at_start) <= per_look, "announced in the first look, stopped in the second"


def test_budget_levels_are_reported_once_and_the_stop_is_announced(books: Bills) -> None:
    budgets = books.bills.budgets
    books.run()
    budgets.set(
        Budget(project_id=PROJECT, currency="", micros=20_000_000, hard_stop=True, notice_seconds=3600)
    )
    for _ in range(7 * 120):
        books.world.wait(LOOK_SECONDS)
        budgets.turn()
        if books.stopped:
            break
    assert books.stopped == [PROJECT]
    standing = budgets.standing(PROJECT)
    assert standing is not None
    assert 0 <= 20_000_000 - standing.spent_micros <= standing.micros_per_hour // 120
    kinds = [
        row[0] for row in books.world.rows("SELECT kind FROM event WHERE kind LIKE 'budget.%' ORDER BY id")
    ]
    assert kinds == ["budget.reached", "budget.reached", "budget.ending", "budget.stopped"]


def test_a_budget_below_the_spending_is_accepted_and_stops_launches(books: Bills) -> None:
    books.run()
    books.world.wait(hours=5)
    books.check_launch(PROJECT)
    standing = books.bills.budgets.set(Budget(project_id=PROJECT, currency="", micros=1))
    assert standing.spent_micros > 1
    assert standing.levels_reached == (50, 80, 100)
    with pytest.raises(BudgetReached):
        books.check_launch(PROJECT)
    books.check_launch(OTHER_PROJECT)


def test_a_budget_below_the_spending_is_announced_at_once_and_stops_at_the_first_check(books: Bills) -> None:
    books.run()
    books.world.wait(hours=5)
    standing = books.bills.budgets.set(Budget(project_id=PROJECT, currency="", micros=1, hard_stop=True))
    assert standing.announced_us == books.world.now_us
    books.world.wait(LOOK_SECONDS)
    assert books.bills.budgets.turn() == [PROJECT]


def test_spending_counts_before_it_is_metered_or_billed(books: Bills) -> None:
    """The loops may be hours late. Admission of a launch depends on actual usage, not on what they have processed."""
    books.bills.budgets.set(Budget(project_id=PROJECT, currency="", micros=10_000_000))
    for phase in (Phase.QUEUED, Phase.STARTING, Phase.RUNNING):
        books.world.move("ins_1", phase)
    books.world.wait(hours=4)
    with pytest.raises(BudgetReached):
        books.check_launch(PROJECT)
    books.world.move("ins_1", Phase.STOPPING)
    for step in (books.bills.meter.catch_up, books.bills.biller.catch_up):
        with pytest.raises(BudgetReached):
            books.check_launch(PROJECT)
        before = books.bills.budgets.standing(PROJECT)
        step()
        assert books.bills.budgets.standing(PROJECT) == before


def test_a_top_up_leads_to_a_new_notice_before_the_balance_ends(books: Bills) -> None:
    books.bills.set_profile(Profile(project_id=PROJECT, currency="USD", pays="prepaid"))
    books.bills.invoices.pay_in(PROJECT, 10_000_000)
    books.run()
    kinds = []
    for _ in range(2):
        books.stopped.clear()
        for _ in range(8 * 120):
            books.world.wait(LOOK_SECONDS)
            books.bills.budgets.turn()
            if books.stopped:
                break
        assert books.stopped
        kinds = [
            row[0]
            for row in books.world.rows("SELECT kind FROM event WHERE kind LIKE 'budget.%' ORDER BY id")
        ]
        books.bills.invoices.pay_in(PROJECT, 15_000_000)
    assert kinds == ["budget.ending", "budget.stopped", "budget.ending"]


def test_a_month_beyond_a_hard_budget_is_neither_bought_nor_renewed(books: Bills) -> None:
    books.run()
    budgets, purchases = books.bills.budgets, books.bills.purchases
    budgets.set(Budget(project_id=PROJECT, currency="", micros=10**9, hard_stop=True))
    with pytest.raises(BudgetReached):
        purchases.buy(PROJECT, "ins_1", "monthly")
    budgets.remove(PROJECT)
    bought, _ = purchases.buy(PROJECT, "ins_1", "monthly")
    budgets.set(Budget(project_id=PROJECT, currency="", micros=10**9, hard_stop=True))
    books.world.wait(days=40)
    books.world.book()
    purchase, terms = purchases.one(PROJECT, bought.id)
    assert purchase.ended
    assert [term.kind for term in terms] == ["bought"]
    assert books.world.rows("SELECT COUNT(*) FROM event WHERE kind = 'budget.unrenewed'") == [(1,)]
    books.check()


def test_a_prepaid_project_is_stopped_when_its_balance_is_empty(books: Bills) -> None:
    books.bills.set_profile(Profile(project_id=PROJECT, currency="USD", pays="prepaid"))
    with pytest.raises(BudgetReached):
        books.check_launch(PROJECT)
    books.bills.invoices.pay_in(PROJECT, 10_000_000)
    books.run()
    for _ in range(4 * 120):
        books.world.wait(LOOK_SECONDS)
        books.bills.budgets.turn()
        if books.stopped:
            break
    assert books.stopped == [PROJECT]
    books.world.move("ins_1", Phase.STOPPING)
    books.world.book()
    profile, balance, owed = books.bills.standing(PROJECT)
    assert (profile.pays, owed) == ("prepaid", 0)
    assert 0 <= balance < 200_000
    books.check()


# -- purchases ---------------------------------------------------------------------------------------------------------


def test_a_month_is_renewed_on_its_day_and_ended_with_a_refund(books: Bills) -> None:
    books.run()
    bought, first = books.bills.purchases.buy(PROJECT, "ins_1", "monthly")
    assert first.fee_micros > 2_233_000_000
    books.world.wait(days=45)
    books.world.book()
    _, terms = books.bills.purchases.one(PROJECT, bought.id)
    assert [term.kind for term in terms] == ["bought", "renewed"]
    assert terms[1].from_us == microseconds(months_later(moment(first.from_us), 1))
    assert books.world.charged("ins_1") == 0, "all it holds is paid for"
    ended = books.bills.purchases.end(PROJECT, bought.id)
    assert -terms[1].fee_micros // 2 < ended.fee_micros < 0
    books.world.wait(hours=1)
    books.world.move("ins_1", Phase.STOPPING)
    books.world.book()
    assert books.world.charged("ins_1") > 3_000_000
    books.check()


def test_an_upgrade_costs_the_difference_of_what_is_left(books: Bills) -> None:
    books.run()
    bought, first = books.bills.purchases.buy(PROJECT, "ins_1", "monthly")
    books.world.wait(days=20)
    books.world.move("ins_1", Phase.RUNNING, gpus=2)
    books.bills.meter.catch_up()
    grown = books.bills.purchases.upgrade(PROJECT, bought.id)
    left = (first.until_us - grown.from_us) / (first.until_us - first.from_us)
    assert abs(grown.fee_micros - 2_233_000_000 * left) < 2
    books.world.wait(days=1)
    books.world.book()
    assert books.world.charged("ins_1") == 0
    books.check()


def test_an_overdue_renewal_starts_before_other_changes(books: Bills) -> None:
    """If the loop missed a renewal, ending or upgrading the purchase leaves no gap at that time."""
    books.run()
    bought, _ = books.bills.purchases.buy(PROJECT, "ins_1", "monthly")
    books.world.wait(days=45)
    books.bills.purchases.end(PROJECT, bought.id)
    _, terms = books.bills.purchases.one(PROJECT, bought.id)
    assert [term.kind for term in terms] == ["bought", "renewed", "ended"]
    books.world.book()
    assert books.world.charged("ins_1") == 0
    books.check()


def test_years_are_cheaper_and_cannot_be_ended(books: Bills) -> None:
    books.run()
    bought, term = books.bills.purchases.buy(PROJECT, "ins_1", "reserved", years=3, upfront=True)
    assert term.until_us == microseconds(months_later(moment(term.from_us), 36))
    assert abs(term.fee_micros - term.month_micros * 36 * 0.95) < 2
    with pytest.raises(Refused):
        books.bills.purchases.end(PROJECT, bought.id)
    with pytest.raises(Conflict):
        books.bills.purchases.buy(PROJECT, "ins_1", "monthly")
    with pytest.raises(NotFound):
        books.bills.purchases.end(OTHER_PROJECT, bought.id)
    books.check()


@given(
    at=st.integers(946_684_800_000_000, 3_786_912_000_000_000).map(moment),
    months=st.integers(0, 100),
)
def test_months_keep_their_day_if_it_exists(at: datetime, months: int) -> None:
    later = months_later(at, months)
    assert (later.year * 12 + later.month) - (at.year * 12 + at.month) == months
    assert later.day == at.day or (later + DAY).month != later.month
    assert later.time() == at.time()


def test_a_quote_is_what_is_charged(books: Bills) -> None:
    books.run()
    cost = books.bills.costs(PROJECT, ["ins_1"])["ins_1"]
    held = Holding(size=Size(gpu="V100-SXM2", gpus=1, vcpus=8, ram_bytes=61 << 30, disk_bytes=100 << 30))
    until = books.world.clock.now() + timedelta(hours=31)
    quote = books.bills.quote(PROJECT, held, until=until)
    assert quote.micros_per_hour == cost.micros_per_hour
    books.world.wait(hours=31)
    books.world.move("ins_1", Phase.STOPPING)
    books.world.book()
    assert books.world.charged("ins_1") == quote.micros_until_deadline
    assert verify(books.world.database).is_sound


@given(seconds=st.integers(1, 200_000), metered=st.booleans(), billed=st.booleans())
def test_a_stop_reports_what_is_charged_even_if_loops_are_late(
    seconds: int, metered: bool, billed: bool
) -> None:
    books = Bills()
    books.run()
    books.world.wait(seconds)
    books.world.move("ins_1", Phase.STOPPING)
    books.world.move("ins_1", Phase.STOPPED)
    if metered:
        books.bills.meter.catch_up()
    if metered and billed:
        books.world.book()
    cost = books.bills.costs(PROJECT, ["ins_1"])["ins_1"]
    disk = books.bills.quote(PROJECT, Holding(size=Size(disk_bytes=100 << 30)))
    assert cost.micros_per_hour == disk.micros_per_hour, "only the disk of a stopped instance costs"
    books.world.book()
    assert books.world.charged("ins_1") == cost.micros
