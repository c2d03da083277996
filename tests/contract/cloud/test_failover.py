"""A launch with alternatives at two clouds moves on from machines that are not free or do not work, one at a time."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.contract.cloud.ground import MORE, SITE, START, Ground
from tests.fakes.guest import FakeLink
from tests.long import sampled

from teraflock.base.errors import BadInput, QuotaReached, Refused, TeraflockError
from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host, HostKind, HostState
from teraflock.instance.model import Operation, RestartPolicy
from teraflock.instance.orders import Order, RentalWish, ShapeWish
from teraflock.instance.states import Phase
from teraflock.reconcile.rehearsal import points
from teraflock.tenant.model import Quota

OTHER = "other"


class TwoClouds(Ground):
    """Lambda as `acct`, and Google as `other`."""

    def __init__(self, folder: Path) -> None:
        self.second = MORE["gcp"]
        super().__init__("lambda", folder)
        self.fakes = {SITE: self.fake, OTHER: self.google}

    def open(self) -> Any:
        if not hasattr(self, "google"):
            self.google = self.second.fake(self.clock)
        self.open_site(OTHER, "gcp", self.google, FakeLink(self.google))
        return super().open()

    def order(self, **changes: Any) -> Order:
        google = RentalWish(provider="gcp", type=self.second.type, region=self.second.first_region)
        spot = msgspec.structs.replace(google, mode="spot", region="")
        first = {"region": self.kind.first_region, "alternatives": (google, spot)}
        return super().order(**{**first, **changes})

    @property
    def alive(self) -> list[tuple[str, str]]:
        """Site and region of all machines."""
        return [(site, each.region) for site, fake in self.fakes.items() for each in fake.alive]

    @property
    def made(self) -> int:
        return sum(len(fake.machines) for fake in self.fakes.values())

    def hosts(self) -> list[Host]:
        with self.installation.database.read() as tx:
            return list(fleet.hosts(tx, limit=99, kind=HostKind.RENTED))

    def check_books(self) -> None:
        """Nothing is left, and every machine's cost is recorded at its own account."""
        assert self.alive == []
        assert {site: self.recorded(site) for site in self.fakes} == {
            site: fake.charged() for site, fake in self.fakes.items()
        }
        assert {each.state for each in self.hosts()} <= {HostState.GONE}

    def never_two(self, point: str) -> None:
        assert len(self.alive) <= 1, f"two machines at {point}: {self.alive}"


@pytest.fixture
def ground(tmp_path: Path) -> TwoClouds:
    ground = TwoClouds(tmp_path)
    for worker in ground.installation.workers:
        worker.befalls = ground.never_two
    return ground


def test_the_ordered_machine_is_rented_if_it_can_be_had(ground: TwoClouds) -> None:
    ground.launch()
    ground.settle()
    assert (ground.one().phase, ground.one().site) == (Phase.RUNNING, SITE)
    rental = ground.one().spec.rental
    assert rental is not None
    assert [(each.site, each.type, each.mode) for each in rental.choices] == [
        (SITE, "gpu_1x_a10", "on-demand"),
        (OTHER, "g2-standard-4", "on-demand"),
        (OTHER, "g2-standard-4", "spot"),
    ]
    ground.delete()
    ground.settle()
    ground.check_books()


@pytest.mark.parametrize(
    "wrong", ["sold_out", "born_dead", "born_broken", "born_short", "born_small", "never_answers"]
)
def test_what_cannot_be_had_or_used_moves_to_the_other_account(ground: TwoClouds, wrong: str) -> None:
    if wrong == "sold_out":
        ground.fake.sold_out = {ground.kind.first_region}
    elif wrong == "never_answers":
        ground.fake.boot_seconds = 10**6
    else:
        setattr(ground.fake, wrong, 1)
    ground.launch(authorized_keys=("ssh-ed25519 AAAAtenant",))
    ground.work(rounds=800 if wrong == "never_answers" else 90)
    ground.settle()
    one = ground.one()
    assert (one.phase, one.site, one.problem) == (Phase.RUNNING, OTHER, "")
    assert ground.alive == [(OTHER, "us-central1-a")]
    (host,) = [each for each in ground.hosts() if each.state == HostState.READY]
    assert (host.id, host.type, host.site) == (one.host_id, "g2-standard-4", OTHER)
    assert (one.shape.gpu, one.shape.vcpus, one.held.vcpus) == ("L4", 4, 4)
    assert [(card.gpu, card.instance_id) for card in host.gpus] == [("L4", one.id)]
    view = ground.installation.service.view(ground.installation.tenant.project.id, "one")
    assert view.rented is not None
    assert view.rented.endpoints[22][0] == ground.google.alive[0].address
    ground.delete()
    ground.settle()
    ground.check_books()


def test_the_last_choice_fails_with_its_reason(ground: TwoClouds) -> None:
    ground.fake.sold_out = {"us-east-1"}
    ground.google.sold_out = {"us-central1", "us-east1"}
    ground.launch()
    ground.settle()
    assert ground.one().phase == Phase.FAILED
    assert "no such machine free" in ground.one().problem
    ground.check_books()


@pytest.mark.parametrize(("trouble", "words"), [("over_quota", "quota"), ("broke", "wants to be paid first")])
def test_quota_and_money_stop_with_the_provider_s_words(ground: TwoClouds, trouble: str, words: str) -> None:
    if trouble not in ground.fake.troubles:
        pytest.skip("this API does not report it")
    setattr(ground.fake, trouble, True)
    ground.launch()
    ground.settle()
    assert ground.one().phase == Phase.FAILED
    assert words in ground.one().problem_operator
    assert ground.google.machines == {}


def test_a_lost_spot_machine_moves_on_and_a_lost_on_demand_machine_does_not(ground: TwoClouds) -> None:
    spot = ground.order().alternatives[1]
    lambda_ = RentalWish(site=SITE, type=ground.kind.type, region=ground.kind.first_region)
    first = {**msgspec.structs.asdict(spot), "site": "", "region": "us-east1"}
    ground.launch(**{**first, "alternatives": (lambda_,)})
    ground.settle()
    assert (ground.one().site, ground.one().spec.mode) == (OTHER, "spot")
    assert ground.one().spec.restart_policy == RestartPolicy.ELSEWHERE
    ground.installation.workers[0].look()  # a machine that is lost costs nothing since it was last listed
    ground.google.end(ground.google.alive[0].id)
    ground.work(rounds=30)
    ground.settle()
    one = ground.one()
    assert (one.phase, one.site, one.spec.mode) == (Phase.RUNNING, SITE, "on-demand")
    assert ground.alive == [(SITE, "us-east-1")]
    ground.delete()
    ground.settle()
    ground.check_books()


MOVES = [point for point in points(Operation.LAUNCH) if "expose" not in point and "prepare" not in point]


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("point", sampled(MOVES, every=3, because="a crash at each point of a move"))
def test_a_dead_worker_at_any_point_of_a_move_doubles_and_leaks_nothing(
    ground: TwoClouds, point: str, lost: bool
) -> None:
    """The first machine does not work, so that the launch is undone; then the answer of the second launch is lost."""
    ground.fake.born_dead = 1
    ground.google.listing_seconds = 20.0
    ground.launch()
    died: list[str] = []

    def befalls(reached: str) -> None:
        ground.never_two(reached)
        is_here = reached == point and not died
        if is_here:
            died.append(reached)
            if lost:
                ground.google.lost_answers = ["launch"]
            ground.installation.workers[0].dies_in = 1

    for _ in range(60):
        ground.installation.workers[0].befalls = befalls
        ground.work(rounds=3)
    ground.settle()
    assert died
    assert (ground.one().phase, ground.one().site) == (Phase.RUNNING, OTHER), ground.one().problem
    assert (len(ground.alive), ground.made) == (1, 2)
    ground.delete()
    ground.settle()
    ground.check_books()


def test_an_account_that_the_project_lost_is_skipped(ground: TwoClouds) -> None:
    ground.fake.sold_out = {"us-east-1"}
    west = RentalWish(site=SITE, type=ground.kind.type, region="us-west-1")
    ground.launch(alternatives=(*ground.order().alternatives, west))
    engines = ground.installation.engines
    engines.for_all -= {OTHER}
    ground.settle()
    assert (ground.one().phase, ground.alive) == (Phase.RUNNING, [(SITE, "us-west-1")])
    assert ground.google.machines == {}


def test_a_quota_is_checked_again_for_a_larger_machine(ground: TwoClouds) -> None:
    ground.fake.sold_out = {"us-east-1"}
    tenants, tenant = ground.installation, ground.installation.tenant
    tenants.database.write(
        lambda tx: tx.run(
            "UPDATE project SET quota = :quota WHERE id = :id",
            quota=msgspec.json.encode(Quota(gpus={"L4": 0})).decode(),
            id=tenant.project.id,
        )
    )
    ground.launch()
    ground.settle()
    assert ground.one().phase == Phase.FAILED
    assert "No other machine was rented" in ground.one().problem
    assert ground.google.machines == {}
    ground.check_books()


@pytest.mark.parametrize("policy", [RestartPolicy.SAME_HOST, RestartPolicy.ELSEWHERE])
def test_a_budget_is_checked_before_another_machine_is_rented(
    ground: TwoClouds, policy: RestartPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.launch(restart_policy=policy)
    ground.settle()
    asked: list[str] = []

    def refuses(tx: object, project_id: str) -> None:
        asked.append(project_id)
        raise QuotaReached("The budget is spent", hint="Raise it")

    for worker in ground.installation.workers:
        worker.drift._around = msgspec.structs.replace(worker.around, admits=refuses)
    worker = ground.installation.workers[0]
    worker.look()
    ground.fake.end(ground.fake.alive[0].id)
    for _ in range(40):
        ground.installation.wait(5)
        worker.turn()
        worker.look()
    assert asked
    assert ground.one().phase == Phase.FAILED
    assert "The budget is spent" in ground.one().problem
    ground.settle()
    ground.check_books()


DEAR = RentalWish(provider="gcp", type="g2-standard-4", price_limit_micros_per_hour=1)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"alternatives": (RentalWish(provider="gcp"),)}, BadInput),
        ({"alternatives": (RentalWish(type="x"),)}, BadInput),
        ({"alternatives": (RentalWish(provider="gcp", type="x", mode="bid"),)}, BadInput),
        ({"alternatives": (RentalWish(provider="gcp", type="x", shape=ShapeWish(gpus=1)),)}, BadInput),
        ({"alternatives": (RentalWish(provider="gcp", type="x"),) * 32}, BadInput),
        ({"site": "", "type": "", "region": ""}, BadInput),
        ({"type": "gpu_1x_a11", "alternatives": (RentalWish(provider="vast", type="x"),)}, BadInput),
        ({"price_limit_micros_per_hour": 1, "alternatives": (DEAR,)}, Refused),
    ],
)  # fmt: skip
def test_wrong_alternatives_are_refused_before_anything_is_rented(
    ground: TwoClouds, changes: dict[str, Any], error: type[TeraflockError]
) -> None:
    with pytest.raises(error) as refused:
        ground.launch(**changes)
    assert refused.value.hint
    ground.settle()
    assert ground.made == 0


def test_alternatives_that_cannot_be_rented_now_are_left_out(ground: TwoClouds) -> None:
    none = RentalWish(provider="vast", type="x")
    good = RentalWish(provider="gcp", type="g2-standard-4")
    ground.launch(type="none", alternatives=(none, DEAR, good))
    ground.settle()
    assert (ground.one().phase, ground.one().site) == (Phase.RUNNING, OTHER)
    assert ground.clock.now() > START
