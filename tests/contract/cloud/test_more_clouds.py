"""What a cloud's module decides, for each cloud: calls, replies, errors, marks. `test_clouds.py` tests the engine."""

from datetime import timedelta
from pathlib import Path

import pytest
from tests.contract.cloud.ground import MORE, Ground

from teraflock.base.errors import TeraflockError
from teraflock.instance.driver import Capability, Seen
from teraflock.instance.engine_errors import BadCredentials
from teraflock.instance.model import RestartPolicy
from teraflock.instance.states import Phase


@pytest.fixture(params=sorted(MORE))
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    return Ground(request.param, tmp_path)


def judged(kind: str, folder: Path) -> Ground:
    return Ground(kind, folder, judge=MORE[kind].fake.judge_of())


def life(ground: Ground) -> None:
    """A machine is rented, ready, known after a restart, and given back without a rest."""
    ground.launch(authorized_keys=("ssh-ed25519 AAAAtenant",))
    ground.work(rounds=20)
    ground.open()
    ground.settle()
    (machine,) = ground.fake.alive
    view = ground.house.service.view(ground.house.tenant.project.id, "one")
    assert (view.instance.phase, view.instance.problem_operator) == (Phase.RUNNING, "")
    assert view.rented is not None
    assert view.rented.endpoints[22][0] == machine.address
    ground.driver.check()
    if Capability.STOP in ground.driver.capabilities:
        stop_and_start(ground)
    ground.delete()
    ground.settle()
    assert ground.one().phase == Phase.GONE
    assert ground.fake.alive == []
    assert len(ground.fake.machines) == 1
    for leftover in ground.driver.leftovers():
        ground.driver.remove_leftover(leftover)
    assert list(ground.driver.leftovers()) == []


def stop_and_start(ground: Ground) -> None:
    service, tenant = ground.house.service, ground.house.tenant
    service.stop(tenant.actor, tenant.project, "one")
    ground.settle()
    assert ground.one().phase == Phase.STOPPED
    assert [each.seen for each in ground.driver.sightings()] == [Seen.STOPPED]
    service.start(tenant.actor, tenant.project, "one")
    ground.settle()
    assert ground.one().phase == Phase.RUNNING


def test_a_machine_is_rented_used_and_given_back(ground: Ground) -> None:
    life(ground)


@pytest.mark.parametrize("kind", sorted(MORE))
def test_requests_and_replies_are_those_of_the_provider_s_description(kind: str, tmp_path: Path) -> None:
    ground = judged(kind, tmp_path)
    ground.fake.sold_out = {ground.kind.first_region}
    life(ground)
    assert ground.fake.judge.judged > 10


def test_a_machine_costs_what_its_type_costs(ground: Ground) -> None:
    ground.launch()
    ground.settle()
    (machine,) = ground.fake.alive
    types = [each for each in ground.driver.types() if each.name == ground.kind.type]
    assert {each.prices["on-demand"] for each in types} == {machine.micros_per_hour}
    assert all(each.gpus == machine.gpus and each.gpu for each in types)
    (seen,) = ground.driver.sightings()
    assert seen.made is not None
    assert seen.made.price_micros_per_hour == machine.micros_per_hour
    ground.delete()
    ground.settle()
    assert ground.recorded() == ground.fake.charged() > 0


def test_a_lost_answer_rents_once(ground: Ground) -> None:
    ground.fake.lost_answers = ["launch"]
    ground.launch()
    ground.work(rounds=60)
    ground.settle()
    assert (ground.one().phase, len(ground.fake.machines)) == (Phase.RUNNING, 1)


def test_no_capacity_moves_to_the_next_region(ground: Ground) -> None:
    ground.fake.sold_out = {ground.kind.first_region}
    ground.launch()
    ground.settle()
    (machine,) = ground.fake.alive
    assert ground.one().phase == Phase.RUNNING
    assert machine.region.startswith(ground.kind.other_region)


def test_no_capacity_anywhere_fails_with_a_reason(ground: Ground) -> None:
    ground.fake.sold_out = {ground.kind.first_region, ground.kind.other_region}
    ground.launch()
    ground.work()
    assert ground.one().phase == Phase.FAILED
    assert ground.fake.alive == []


@pytest.mark.parametrize("trouble", ["over_quota", "broke"])
def test_quota_and_money_end_a_launch(ground: Ground, trouble: str) -> None:
    if trouble not in ground.fake.troubles:
        pytest.skip("this API does not report it")
    setattr(ground.fake, trouble, True)
    ground.launch()
    ground.work(rounds=10)
    assert ground.one().phase == Phase.FAILED
    launches = [call for call in ground.fake.calls if call.startswith("launch")]
    assert len(launches) == 1, "the account is the same in every region"
    assert "operator" in ground.one().problem


def test_a_wrong_key_says_nothing_about_machines(ground: Ground) -> None:
    ground.launch()
    ground.settle()
    ground.fake.locked_out = True
    with pytest.raises(BadCredentials) as refused:
        ground.driver.check()
    assert refused.value.hint
    with pytest.raises(TeraflockError):
        ground.driver.sightings()
    for _ in range(5):
        ground.house.workers[0].look()
        ground.house.wait(30)
    assert ground.one().phase == Phase.RUNNING


def test_too_many_requests_are_waited_out(ground: Ground) -> None:
    ground.fake.refusals = 4
    ground.launch()
    ground.work(rounds=40)
    ground.settle()
    assert (ground.one().phase, len(ground.fake.machines)) == (Phase.RUNNING, 1)


def test_a_machine_that_never_comes_up_is_given_back(ground: Ground) -> None:
    ground.fake.born_dead = 1
    ground.launch()
    ground.work(rounds=100, seconds=15)
    ground.settle()
    first, *_ = ground.fake.machines.values()
    assert first.ended is not None
    assert (ground.one().phase, len(ground.fake.alive)) == (Phase.RUNNING, 1)


def test_a_spot_machine_announces_its_end_and_is_replaced(ground: Ground) -> None:
    if ground.driver.cloud.notice is None or not ground.kind.notice:
        pytest.skip("nothing in the machine announces its end")
    ground.launch(mode="spot", restart_policy=RestartPolicy.ELSEWHERE)
    ground.settle()
    (machine,) = ground.fake.alive
    assert machine.spot
    assert [each.leaving_at for each in ground.driver.sightings()] == [None]
    end = ground.clock.now() + timedelta(seconds=90)
    machine.notice = ground.kind.notice.replace("TIME", end.strftime("%Y-%m-%dT%H:%M:%SZ"))
    ground.house.wait(30)
    ground.house.workers[0].look()
    (seen,) = ground.driver.sightings()
    assert seen.leaving_at is not None
    assert ground.clock.now() < seen.leaving_at <= end
    with ground.house.database.read() as tx:
        events = tx.all("SELECT kind FROM event WHERE kind = 'instance.leaving'")
    assert len(events) == 1
    ground.fake.end(machine.id)
    ground.work(rounds=60)
    ground.settle()
    assert (ground.one().phase, len(ground.fake.alive)) == (Phase.RUNNING, 1)
    assert machine.ended is not None
