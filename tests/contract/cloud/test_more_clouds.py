"""What a cloud's module decides, for each cloud: calls, replies, errors, marks. `test_clouds.py` tests the engine."""

import sys
from datetime import timedelta
from pathlib import Path

import pytest
from tests.contract.cloud.direct import ID, Direct
from tests.contract.cloud.ground import MORE, Ground
from tests.fakes.guest import authorized

from teraflock.base.errors import TeraflockError
from teraflock.drivers.clouds.errors import Unusable
from teraflock.instance.driver import GRACE, Capability, Handle, Seen
from teraflock.instance.engine_errors import (
    BadCredentials,
    EngineBusy,
    EngineDown,
    EngineMissing,
    NoMoney,
    NoRoom,
    OverQuota,
)
from teraflock.instance.model import RestartPolicy
from teraflock.instance.states import Phase


@pytest.fixture(params=sorted(MORE))
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Direct:
    return Direct(request.param, tmp_path)


def life(cloud: Direct) -> None:
    """A machine is rented, ready, stopped, started and given back without a rest, and a sold-out place is refused."""
    cloud.site.check()
    types = cloud.site.refresh_types()
    assert {each.region for each in types} >= {cloud.kind.first_region, cloud.kind.other_region}
    cloud.fake.sold_out = {cloud.kind.first_region}
    with pytest.raises(NoRoom):
        cloud.create()
    made = cloud.create(token=f"{ID}.1.1", region=cloud.kind.other_region)
    there = {"token": f"{ID}.1.1", "region": cloud.kind.other_region}
    found = cloud.ready(made, **there)
    (machine,) = cloud.fake.alive
    assert machine.region.startswith(cloud.kind.other_region)
    assert found.endpoints[22].address == machine.address
    assert found.host_key.startswith("ssh-ed25519 ")
    assert "AAAAtenant" in authorized(machine)
    (seen,) = cloud.open().sightings()
    assert (seen.instance_id, seen.seen) == (ID, Seen.RUNNING)
    if Capability.STOP in cloud.site.capabilities:
        handle = Handle(ID, "", made.remote_id)
        cloud.site.stop(handle, force=False)
        assert [each.seen for each in cloud.site.sightings()] == [Seen.STOPPED]
        cloud.site.start(handle)
        assert cloud.ready(made, **there).ready
    assert not [each for each in cloud.site.leftovers() if each.token], "they belong to a machine"
    cloud.delete(made)
    assert cloud.fake.alive == []
    for leftover in cloud.site.leftovers():
        cloud.site.remove_leftover(leftover)
    assert list(cloud.site.leftovers()) == []


def test_a_machine_is_rented_used_and_given_back(cloud: Direct) -> None:
    life(cloud)


@pytest.mark.parametrize("kind", sorted(MORE))
def test_requests_and_replies_are_those_of_the_provider_s_description(kind: str, tmp_path: Path) -> None:
    cloud = Direct(kind, tmp_path, judge=MORE[kind].fake.judge_of())
    life(cloud)
    if "spot" in cloud.site.types()[0].prices:
        cloud.fake.sold_out = set()
        cloud.create(token=f"{ID}.2.0", mode="spot", price_limit_micros_per_hour=10**9)
        assert cloud.fake.alive[0].spot
    assert cloud.fake.judge.judged > 9


def test_a_machine_costs_what_its_type_costs(cloud: Direct) -> None:
    cloud.site.refresh_types()
    made = cloud.create()
    (machine,) = cloud.fake.alive
    types = [each for each in cloud.site.types() if each.name == cloud.kind.type]
    assert {each.prices["on-demand"] for each in types} == {machine.micros_per_hour}
    assert all(each.gpus == machine.gpus and each.gpu and each.gpu_memory_bytes for each in types)
    assert made.price_micros_per_hour == machine.micros_per_hour
    (seen,) = cloud.site.sightings()
    assert seen.made is not None
    assert seen.made.price_micros_per_hour == machine.micros_per_hour


def test_a_launch_is_looked_for_before_it_is_repeated(cloud: Direct) -> None:
    cloud.fake.lost_answers = ["launch"]
    with pytest.raises(EngineDown):
        cloud.create()
    again = cloud.open().create(cloud.machine())
    assert again is not None
    assert len(cloud.fake.machines) == 1


def test_an_older_launch_of_the_instance_is_given_back_first(cloud: Direct) -> None:
    cloud.create()
    cloud.create(token=f"{ID}.2.0")
    assert len(cloud.fake.alive) == 1
    assert len(cloud.fake.machines) == 2


@pytest.mark.parametrize(("trouble", "error"), [("over_quota", OverQuota), ("broke", NoMoney)])
def test_quota_and_money_are_told_apart(cloud: Direct, trouble: str, error: type[Exception]) -> None:
    if trouble not in cloud.fake.troubles:
        pytest.skip("this API does not report it")
    setattr(cloud.fake, trouble, True)
    with pytest.raises(error):
        cloud.create()
    assert cloud.fake.machines == {}


def test_a_state_that_nobody_knows_is_no_absence(cloud: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """Providers add states. A machine that seems absent would be given up, and stay on the bill."""
    cloud.create()
    module = sys.modules[type(cloud.site.cloud).__module__]
    if not hasattr(module, "SEEN"):
        pytest.skip("this provider reports no single state")
    monkeypatch.setattr(module, "SEEN", {})
    try:
        found = list(cloud.site.sightings())
    except TeraflockError:
        return  # nothing is concluded from a listing that fails
    assert len(found) == 1


def test_a_wrong_key_says_nothing_about_machines(cloud: Direct) -> None:
    made = cloud.create()
    cloud.fake.locked_out = True
    for act in (
        cloud.site.check,
        cloud.site.sightings,
        lambda: cloud.site.delete(Handle(ID, "", made.remote_id)),
    ):
        with pytest.raises(BadCredentials) as refused:
            act()
        assert refused.value.hint
        assert cloud.fake.secret not in refused.value.sentence
    assert len(cloud.fake.alive) == 1


def test_too_many_requests_are_busy(cloud: Direct) -> None:
    cloud.fake.refusals = 1
    with pytest.raises(EngineBusy):
        cloud.site.check()
    assert cloud.site.check()


@pytest.mark.parametrize("wrong", ["born_dead", "born_broken", "born_short", "born_small"])
def test_a_machine_that_is_not_usable_is_refused(cloud: Direct, wrong: str) -> None:
    setattr(cloud.fake, wrong, 1)
    cloud.site.refresh_types()  # they say how much memory is promised
    made = cloud.create()
    with pytest.raises(Unusable):
        cloud.ready(made)


LEFT = [(kind, what) for kind, each in sorted(MORE.items()) for what in each.fake.leaves]


@pytest.mark.parametrize(("kind", "what"), LEFT)
def test_what_a_machine_left_behind_is_listed_and_removed(kind: str, what: str, tmp_path: Path) -> None:
    """Each kind of thing that the fake can leave: of a launch that is over, of one that runs, and of somebody else."""
    fake = MORE[kind].fake
    cloud = Direct(kind, tmp_path, judge=fake.judge_of() if fake.said[0] or not fake.spec else None)
    mark, other = "m7e81w00sm3jsp32", "m7e81w00another9"
    cloud.ready(cloud.create())
    before = {each.remote_id for each in cloud.site.leftovers()}
    for owner, token in ((mark, "ins_9.1.0"), (mark, f"{ID}.1.0"), (other, "ins_9.1.0")):
        cloud.fake.leave(what, owner, token)
    (found,) = [each for each in cloud.site.leftovers() if each.remote_id not in before]
    assert (found.kind, found.instance_id, found.token) == (what, "ins_9", "ins_9.1.0")
    assert found.price_micros_per_hour or found.price_micros_per_hour is None
    cloud.site.remove_leftover(found)
    cloud.site.remove_leftover(found)  # repeated after a lost answer
    assert {each.remote_id for each in cloud.site.leftovers()} == before
    assert len(cloud.fake.alive) == 1


@pytest.mark.parametrize(("kind", "micros"), [("aws", 14_027), ("azure", 13_150), ("gcp", 17_534)])
def test_a_disk_without_a_machine_has_a_cost(kind: str, micros: int, tmp_path: Path) -> None:
    cloud = Direct(kind, tmp_path)
    cloud.fake.leave("disk", "m7e81w00sm3jsp32", "ins_9.1.0")
    (found,) = [each for each in cloud.site.leftovers() if each.kind == "disk"]
    assert (found.price_micros_per_hour, found.currency) == (micros, "USD")


def test_a_machine_that_vanishes_before_it_is_ready_makes_place_for_the_next(cloud: Direct) -> None:
    made = cloud.create()
    cloud.fake.end(cloud.fake.alive[0].id)
    cloud.wait(10)
    machine = cloud.machine(remote_id=made.remote_id)
    assert not cloud.site.ready(machine).ready, "listings lag"
    cloud.wait(GRACE.total_seconds() + 10)
    with pytest.raises(Unusable, match="before it was ready"):
        cloud.site.ready(machine)


@pytest.mark.parametrize("reply", [b"[]", b"{}", b'"x"', b"<html>"])
def test_an_unexpected_answer_is_never_an_empty_listing(cloud: Direct, reply: bytes) -> None:
    import msgspec

    cloud.create()
    answered = cloud.fake.route

    def route(method: str, path: str, *rest: object) -> object:
        return (200, msgspec.Raw(reply)) if "token" not in path else answered(method, path, *rest)  # type: ignore[arg-type]

    cloud.fake.route = route  # type: ignore[method-assign, assignment]
    if cloud.kind.kind == "oci" and reply == b"[]":
        pytest.skip("an empty list is a listing there")
    with pytest.raises(EngineDown):
        cloud.site.sightings()


def test_a_machine_with_a_place_of_another_form_is_an_answer_of_another_form(tmp_path: Path) -> None:
    cloud = Direct("genesis", tmp_path)
    cloud.create()
    cloud.fake.alive[0].region = ["somewhere"]  # type: ignore[assignment]
    with pytest.raises(EngineDown):
        cloud.site.sightings()


def test_a_time_limit_reaches_the_provider(cloud: Direct) -> None:
    if not cloud.site.cloud.has_time_limit:
        pytest.skip("this provider ends no machine by itself")
    site = cloud.open(hours_max="72")
    site.create(cloud.machine())
    end = cloud.clock.now() + timedelta(hours=72)
    (machine,) = cloud.fake.alive
    assert f"{end:%Y-%m-%dT%H:%M}" in str(machine.label)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("oci", {"prices": "VM.GPU.A10.1=free"}, "not a price"),
        ("oci", {"prices": "VM.GPU.A10.1=-1"}, "not a price"),
        ("oci", {"prices": "VM.GPU.A10.1"}, "NAME=VALUE"),
        ("azure", {"regions": " , "}, "names no region"),
        ("azure", {"subscription": ""}, "need the option `subscription`"),
        ("gcp", {"disk_gb": "much"}, "disk_gb"),
        ("paperspace", {"prices": "B2=1"}, "Unknown machine type"),
        ("ibm", {"networks": ""}, "need the option `networks`"),
    ],
)
def test_a_wrong_option_is_named(kind: str, options: dict[str, str], words: str, tmp_path: Path) -> None:
    site = Direct(kind, tmp_path).open(**options)

    def use() -> None:
        site.check()
        site.refresh_types()

    with pytest.raises(TeraflockError, match=words):
        use()


def test_machines_that_do_not_answer_do_not_hide_the_others(tmp_path: Path) -> None:
    """A broken SSH client, or silent machines, must not make a site look broken."""
    cloud = Direct("gcp", tmp_path)
    made = cloud.create(mode="spot")
    cloud.ready(made, mode="spot")

    def fails(*words: object) -> None:
        raise EngineDown("`ssh` is not installed on the server")

    cloud.site._leaving._run = fails
    cloud.wait(10)
    assert [each.leaving_at for each in cloud.site.sightings()] == [None]


def test_a_full_zone_moves_to_the_next_one_of_the_region(tmp_path: Path) -> None:
    cloud = Direct("ibm", tmp_path)
    cloud.fake.sold_out = {"us-east-1"}
    site = cloud.open(networks="us-east-1=vpc/one,us-east-2=vpc/two")
    site.create(cloud.machine())
    assert [each.region for each in cloud.fake.alive] == ["us-east-2"]


@pytest.mark.parametrize("kind", sorted(name for name, each in MORE.items() if each.notice))
def test_a_spot_machine_announces_its_end(kind: str, tmp_path: Path) -> None:
    cloud = Direct(kind, tmp_path)
    made = cloud.create(mode="spot")
    cloud.ready(made, mode="spot")
    (machine,) = cloud.fake.alive
    assert machine.spot
    assert [each.leaving_at for each in cloud.site.sightings()] == [None]
    end = cloud.clock.now() + timedelta(seconds=90)
    machine.notice = cloud.kind.notice.replace("TIME", end.strftime("%Y-%m-%dT%H:%M:%SZ"))
    assert [each.leaving_at for each in cloud.site.sightings()] == [None], "asked a moment ago"
    cloud.wait(6)
    (seen,) = cloud.site.sightings()
    assert seen.leaving_at is not None
    assert cloud.clock.now() < seen.leaving_at <= end
    cloud.wait(6)
    assert [each.leaving_at for each in cloud.site.sightings()] == [seen.leaving_at], (
        "the first answer counts"
    )


def test_a_machine_that_is_taken_back_with_a_notice_is_replaced(tmp_path: Path) -> None:
    """The whole way: the notice becomes an event, the loss a new machine."""
    ground = Ground("gcp", tmp_path)
    ground.launch(mode="spot", restart_policy=RestartPolicy.ELSEWHERE)
    ground.settle()
    (machine,) = ground.fake.alive
    machine.notice = "TRUE"
    ground.installation.wait(10)
    ground.installation.workers[0].look()
    with ground.installation.database.read() as tx:
        events = tx.all("SELECT kind FROM event WHERE kind = 'instance.leaving'")
    assert len(events) == 1
    ground.fake.end(machine.id)
    ground.work(rounds=30)
    ground.settle()
    assert (ground.one().phase, len(ground.fake.alive)) == (Phase.RUNNING, 1)


def test_a_rented_machine_stops_and_starts_again(tmp_path: Path) -> None:
    """With the loops: a start repeats the steps of a launch, on a machine of an older launch."""
    ground = Ground("gcp", tmp_path)
    ground.launch()
    ground.settle()
    service, tenant = ground.installation.service, ground.installation.tenant
    service.stop(tenant.actor, tenant.project, "one")
    ground.settle()
    assert ground.one().phase == Phase.STOPPED
    service.start(tenant.actor, tenant.project, "one")
    ground.settle()
    assert (ground.one().phase, ground.one().problem_operator) == (Phase.RUNNING, "")
    ground.delete()
    ground.settle()
    assert ground.fake.alive == []
    assert len(ground.fake.machines) == 1


@pytest.mark.parametrize("kind", ["gcp", "lambda"])  # a login user with sudo, and root
def test_files_of_a_machine_are_read_without_a_call_to_the_provider(kind: str, tmp_path: Path) -> None:
    cloud = Direct(kind, tmp_path)
    made = cloud.create()
    cloud.ready(made)
    calls = len(cloud.fake.calls)
    handle = Handle(ID, "", made.remote_id)
    (tmp_path / "model").write_text("weights")
    assert {Capability.EXEC, Capability.FILES} <= cloud.site.capabilities
    with cloud.site.file(handle, f"{tmp_path}/model") as found:
        assert b"".join(found.content or ()) == b"weights"
    with pytest.raises(EngineMissing), cloud.site.file(handle, f"{tmp_path}/none"):
        pass
    assert len(cloud.fake.calls) == calls
    cloud.site._inside.close()
