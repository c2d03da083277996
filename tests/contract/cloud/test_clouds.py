"""The contract of all public clouds, each against a fake: nothing doubled, nothing leaked, every cost recorded."""

import sys
from pathlib import Path

import msgspec
import pytest
from tests.contract.cloud.ground import KINDS, Ground
from tests.fakes.guest import authorized

from teraflock.base.errors import BadInput, Refused, TeraflockError
from teraflock.instance.driver import Capability
from teraflock.instance.engine_errors import BadCredentials, EngineDown
from teraflock.instance.model import Access, Operation, RestartPolicy
from teraflock.instance.states import Phase
from teraflock.reconcile.rehearsal import points


@pytest.fixture(params=sorted(KINDS))
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    return Ground(request.param, tmp_path)


def test_a_machine_is_rented_used_and_given_back(ground: Ground) -> None:
    ground.launch(authorized_keys=("ssh-ed25519 AAAAtenant",))
    ground.settle()
    (machine,) = ground.fake.alive
    view = ground.installation.service.view(ground.installation.tenant.project.id, "one")
    assert (view.instance.phase, view.instance.problem) == (Phase.RUNNING, "")
    assert view.rented is not None
    assert view.rented.endpoints[22][0] == machine.address
    assert view.instance.host_key.startswith("ssh-ed25519 ")
    assert "AAAAtenant" in authorized(machine)
    ground.delete()
    ground.settle()
    assert ground.one().phase == Phase.GONE
    assert ground.fake.alive == []
    assert ground.recorded() == ground.fake.charged() > 0


def test_creating_twice_rents_once(ground: Ground) -> None:
    ground.launch()
    ground.installation.workers[0].turn()
    ground.open()
    ground.settle()
    assert len(ground.fake.machines) == 1


def test_a_state_that_nobody_knows_is_no_absence(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    ground.launch()
    ground.settle()
    monkeypatch.setattr(sys.modules[type(ground.driver.cloud).__module__], "SEEN", {})
    assert len(list(ground.driver.sightings())) == 1


LAUNCH_POINTS = [point for point in points(Operation.LAUNCH) if ":undo" not in point]


@pytest.mark.parametrize("point", [*LAUNCH_POINTS, *points(Operation.DELETE)])
def test_a_dead_worker_doubles_and_leaks_nothing(ground: Ground, point: str) -> None:
    if point.startswith("delete"):
        ground.launch()
        ground.settle()
        ground.delete()
    else:
        ground.launch()
    ground.installation.workers[0].dies_at = point
    ground.work(rounds=40)
    ground.settle()
    assert len(ground.fake.alive) == (0 if point.startswith("delete") else 1)
    if not point.startswith("delete"):
        ground.delete()
        ground.settle()
    assert ground.fake.alive == []
    assert len(ground.fake.machines) == 1


@pytest.mark.parametrize("listing_seconds", [0.0, 30.0])
@pytest.mark.parametrize("act", ["launch", "change", "read"])
@pytest.mark.parametrize("lost", ["lost_answers", "lost_requests"])
def test_lost_messages_double_and_leak_nothing(
    ground: Ground, lost: str, act: str, listing_seconds: float
) -> None:
    ground.fake.listing_seconds = listing_seconds
    setattr(ground.fake, lost, [act, act])
    ground.launch()
    ground.work(rounds=90)
    ground.settle()
    assert ground.one().phase == Phase.RUNNING, ground.one().problem
    assert len(ground.fake.alive) == 1
    setattr(ground.fake, lost, [act])
    ground.delete()
    ground.work(rounds=30)
    ground.settle()
    assert ground.fake.alive == []
    assert len(ground.fake.machines) == 1
    assert ground.recorded() == ground.fake.charged()


def test_a_lost_request_and_then_a_lost_answer_rent_once(ground: Ground) -> None:
    """The second launch comes after the grace time of the first. Its own grace time counts then."""
    ground.fake.listing_seconds = 40.0
    ground.fake.lost_requests = ["launch"]
    ground.launch()
    ground.work(rounds=5)
    ground.fake.lost_answers = ["launch"]
    ground.work(rounds=120)
    ground.settle()
    assert (ground.one().phase, len(ground.fake.machines)) == (Phase.RUNNING, 1)


def test_a_storm_of_429_delays_and_ends_nothing(ground: Ground) -> None:
    ground.launch()
    ground.fake.refusals = 12
    ground.work(rounds=120)
    ground.settle()
    assert ground.one().phase == Phase.RUNNING
    ground.fake.refusals = 12
    ground.work(rounds=40)
    assert ground.one().phase == Phase.RUNNING
    ground.delete()
    ground.settle()
    assert len(ground.fake.machines) == 1
    assert ground.recorded() == ground.fake.charged()


def test_no_capacity_moves_to_the_next_region(ground: Ground) -> None:
    if not ground.kind.other_region:
        pytest.skip("this cloud chooses the place itself")
    ground.fake.sold_out = {ground.kind.first_region}
    ground.launch()
    ground.settle()
    (machine,) = ground.fake.alive
    assert (ground.one().phase, machine.region) == (Phase.RUNNING, ground.kind.other_region)


def test_no_capacity_anywhere_fails_with_a_reason(ground: Ground) -> None:
    ground.fake.sold_out = {ground.kind.first_region, ground.kind.other_region}
    ground.launch()
    ground.work()
    assert ground.one().phase == Phase.FAILED
    assert "no such machine free" in ground.one().problem
    assert ground.fake.machines == {}


@pytest.mark.parametrize("trouble", ["over_quota", "broke"])
def test_quota_and_money_end_a_launch_with_the_provider_s_words(ground: Ground, trouble: str) -> None:
    if trouble not in ground.fake.troubles:
        pytest.skip("this API does not report it")
    setattr(ground.fake, trouble, True)
    ground.launch()
    ground.work(rounds=10)
    assert ground.one().phase == Phase.FAILED
    launches = [call for call in ground.fake.calls if call.startswith("launch")]
    assert len(launches) == 1, "the account is the same in every region"
    assert ground.one().problem_operator.count(":"), "the operator reads what the provider said"
    assert "operator" in ground.one().problem


def test_a_wrong_key_says_nothing_about_machines(ground: Ground) -> None:
    ground.launch()
    ground.settle()
    ground.fake.locked_out = True
    for _ in range(20):
        ground.installation.workers[0].beat()
        ground.installation.workers[0].look()
        ground.installation.wait(30)
    assert ground.one().phase == Phase.RUNNING
    with pytest.raises(BadCredentials) as refused:
        ground.driver.check()
    assert refused.value.hint
    ground.fake.locked_out = False
    ground.delete()
    ground.settle()
    assert ground.fake.alive == []


def test_a_slow_boot_is_waited_for(ground: Ground) -> None:
    ground.fake.boot_seconds = 600.0
    ground.launch()
    ground.work(rounds=60, seconds=15)
    assert ground.one().phase == Phase.RUNNING


@pytest.mark.parametrize("wrong", ["born_dead", "born_broken"])
def test_a_machine_that_is_not_usable_is_given_back_and_the_next_place_tried(
    ground: Ground, wrong: str
) -> None:
    setattr(ground.fake, wrong, 1)
    ground.launch()
    ground.work(rounds=120, seconds=15)
    ground.settle()
    first, *rest = ground.fake.machines.values()
    assert first.ended is not None
    assert len(rest) <= 1, [each.region for each in rest]
    if ground.kind.other_region:
        assert (ground.one().phase, rest[0].region) == (Phase.RUNNING, ground.kind.other_region)
        ground.delete()
        ground.settle()
    assert ground.fake.alive == []
    assert ground.recorded() == ground.fake.charged()


def test_another_host_key_is_never_trusted(ground: Ground) -> None:
    if not ground.driver.cloud.injects_host_key:
        pytest.skip("this cloud has no way to give a machine its host key")
    ground.launch()
    ground.installation.workers[0].turn()
    foreign = ground.fake.alive[0]
    foreign.host_key = "ssh-ed25519 AAAAsomebodyelse"
    ground.work(rounds=150, seconds=15)
    assert foreign.ended is not None, "it is given back"
    assert foreign not in ground.fake.alive
    if ground.kind.other_region:
        (other,) = ground.fake.alive
        assert (ground.one().phase, other.region) == (Phase.RUNNING, ground.kind.other_region)
    else:
        assert (ground.one().phase, ground.fake.alive) == (Phase.FAILED, [])


@pytest.mark.parametrize("policy", [None, RestartPolicy.ELSEWHERE])
def test_a_machine_that_is_taken_back_follows_the_restart_policy(
    ground: Ground, policy: RestartPolicy | None
) -> None:
    ground.launch(restart_policy=policy)
    ground.settle()
    (machine,) = ground.fake.alive
    ground.fake.end(machine.id)
    ground.work(rounds=60)
    ground.settle()
    if policy is None:
        assert ground.one().phase == Phase.FAILED
        assert ground.fake.alive == []
    else:
        assert ground.one().phase == Phase.RUNNING
        assert len(ground.fake.alive) == 1


def test_a_dearer_machine_than_the_limit_is_not_kept(ground: Ground) -> None:
    price = ground.driver.types()[0].prices["on-demand"]
    ground.launch(price_limit_micros_per_hour=price * 2)
    ground.settle()
    assert ground.one().phase == Phase.RUNNING
    with pytest.raises(TeraflockError, match="more than your limit"):
        ground.launch(name="two", price_limit_micros_per_hour=1)


def test_an_orphan_is_shown_and_never_deleted_by_itself(ground: Ground) -> None:
    ground.launch()
    ground.settle()
    ground.delete()
    ground.installation.database.write(lambda tx: tx.run("DELETE FROM instance"))
    ground.work(rounds=30)
    (orphan,) = ground.driver.sightings()
    assert orphan.made is not None
    assert orphan.made.price_micros_per_hour
    assert len(ground.fake.alive) == 1


def test_what_a_cloud_cannot_do_is_refused_before_anything_is_rented(ground: Ground) -> None:
    with pytest.raises(BadInput, match="drivers come with them"):
        ground.launch(graphics=True)
    if Capability.BIDS not in ground.driver.capabilities:
        with pytest.raises(BadInput, match="does not accept bids"):
            ground.launch(mode="bid", bid_micros_per_hour=10**6)
    assert not [call for call in ground.fake.calls if not call.startswith("read")]
    ground.launch()
    ground.settle()
    for act in (ground.installation.service.stop, ground.installation.service.restart):
        with pytest.raises(Refused, match="does not support"):
            act(ground.installation.tenant.actor, ground.installation.tenant.project, "one")
    assert ground.one().phase == Phase.RUNNING


def test_an_outbid_machine_is_given_back(tmp_path: Path) -> None:
    ground = Ground("vast", tmp_path)
    ground.launch(mode="bid", bid_micros_per_hour=300_000)
    ground.settle()
    (machine,) = ground.fake.alive
    assert (ground.one().phase, machine.micros_per_hour) == (Phase.RUNNING, 300_000)
    machine.outbid = True
    ground.work(rounds=40)
    assert ground.one().phase == Phase.FAILED
    assert ground.fake.alive == []


def test_a_refused_bid_that_left_a_machine_leaves_none(tmp_path: Path) -> None:
    """Vast answers a low bid with an error and a machine that is stopped and billed."""
    ground = Ground("vast", tmp_path)
    ground.launch(mode="bid", bid_micros_per_hour=100_000)
    ground.work(rounds=40)
    assert ground.one().phase == Phase.FAILED
    assert ground.fake.machines
    assert ground.fake.alive == []


def test_a_wrong_key_at_vast_is_404_and_does_not_count_as_gone(tmp_path: Path) -> None:
    ground = Ground("vast", tmp_path)
    ground.launch()
    ground.settle()
    (machine,) = ground.fake.alive
    ground.fake.locked_out = True
    with pytest.raises(BadCredentials):
        ground.driver._ask(ground.driver.cloud.give_back(machine.id))


@pytest.mark.parametrize("reply", [b"[]", b"{}", b'{"data": 5}', b"<html>", b'{"instances": 7, "pods": 7}'])
def test_an_unexpected_answer_is_an_engine_that_is_down(ground: Ground, reply: bytes) -> None:
    ground.launch()
    ground.settle()
    ground.fake.route = lambda *words: (200, msgspec.Raw(reply))  # type: ignore[method-assign]
    with pytest.raises(EngineDown):
        ground.driver.sightings()
    ground.work(rounds=5)
    assert ground.one().phase == Phase.RUNNING


def test_a_command_runs_and_its_exit_code_is_read(ground: Ground) -> None:
    ground.launch(access=Access.COMMAND, command=("echo", "hello"))
    ground.work(rounds=20)
    (machine,) = ground.fake.alive
    assert ground.one().phase == Phase.RUNNING
    ground.link.exit_codes[machine.id] = 3
    ground.work(rounds=20)
    log = ground.installation.service.guests.log(ground.installation.tenant.project.id, "one")
    assert (log.text, log.exit_code) == ("hello\n", 3)
    assert ground.fake.alive == []


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_requests_and_replies_are_those_of_the_provider_s_description(kind: str, tmp_path: Path) -> None:
    fake = KINDS[kind].fake
    judge = fake.judge_of()
    ground = Ground(kind, tmp_path, judge=judge)
    ground.launch()
    ground.settle()
    assert ground.one().phase == Phase.RUNNING, ground.one().problem_operator
    ground.driver.check()
    ground.driver.refresh_types()
    ground.delete()
    ground.settle()
    ground.driver.leftovers()
    assert ground.fake.alive == []
    assert judge.judged > 10


def test_machine_types_have_the_time_at_which_the_provider_said_them(ground: Ground) -> None:
    read_at = ground.driver.types_at
    assert read_at is not None
    ground.fake.locked_out = True
    ground.work(rounds=20, seconds=30)
    assert (len(ground.driver.types()) > 0, ground.driver.types_at) == (True, read_at)
    assert ground.open().types_at == read_at, "also after a restart"
