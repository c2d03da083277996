"""The life cycle of an instance, on every engine: each call, each call twice, and interrupted at any point."""

import pytest
from msgspec.structs import replace
from tests.contract.driver.grounds import BROKEN_OFF, STAGES, Ground, refused

from teraflock.base.quantities import GIB, MIB
from teraflock.instance.driver import Capability, ComputeDriver, Handle, Seen
from teraflock.instance.engine_errors import DoesNotBoot, EngineRefused
from teraflock.instance.model import InstanceId

UNKNOWN = InstanceId("ins_zzzzzzzzzzzzzzzz")


def test_hosts_report_what_they_have(ground: Ground) -> None:
    driver: ComputeDriver = ground.driver
    hosts = driver.hosts()
    assert bool(hosts) == ground.can(Capability.PLACEMENT)
    assert len({host.name for host in hosts}) == len(hosts)
    for host in hosts:
        assert host.address
        assert min(host.vcpus, host.ram_bytes, host.disk_bytes) > 0
        assert len({gpu.slot for gpu in host.gpus}) == len(host.gpus)
    assert driver.site
    assert driver.simulated != ground.around.real


def test_a_launch_ends_with_a_guest_that_answers(ground: Ground) -> None:
    machine = ground.machine()
    for stage in STAGES[:-1]:
        ground.advance(machine, stage)
    readiness = ground.answers(machine)
    assert readiness.host_key.startswith("ssh-ed25519 AAAA")
    seen = ground.driver.look(machine.handle)
    assert seen is not None
    assert (seen.instance_id, seen.host, seen.seen) == (machine.id, machine.handle.host, Seen.RUNNING)
    assert (seen.vcpus, seen.ram_bytes, seen.disk_bytes) == (1, 256 * MIB, 2 * GIB)
    assert (seen.slots or (), seen.altered) == ((), False)
    assert (seen.made is not None) == (not ground.can(Capability.PLACEMENT))
    assert seen in list(ground.driver.sightings())
    assert seen.started_at is not None, (
        "the start time shows whether a guest kept running while the server did not watch"
    )
    ground.driver.stop(machine.handle, force=True)
    stopped = ground.driver.look(machine.handle)
    assert stopped is not None
    assert stopped.started_at is None
    ground.driver.start(machine.handle)
    again = ground.driver.look(machine.handle)
    assert again is not None
    assert again.started_at is not None
    assert again.started_at >= seen.started_at
    ground.answers(machine)
    assert ground.words(machine, "hostname").decode().strip() == machine.hostname


def test_every_call_is_idempotent(ground: Ground) -> None:
    machine = ground.machine()
    driver = ground.driver
    keys = set()
    for stage in STAGES:
        ground.advance(machine, stage)
        ground.advance(machine, stage)
    keys = {ground.answers(machine).host_key, ground.answers(machine).host_key}
    assert len(keys) == 1
    for _ in range(2):
        driver.hide(machine.handle)
    for _ in range(2):
        driver.stop(machine.handle, force=False)
    assert _seen(ground, machine.handle) == Seen.STOPPED
    for _ in range(2):
        driver.resize(machine)
    for _ in range(2):
        driver.delete(machine.handle)
    assert driver.look(machine.handle) is None
    assert machine.id not in ground.sighted()


def test_existing_machine_is_not_created_again(ground: Ground) -> None:
    machine = ground.up()
    ground.words(machine, "tee", "/root/kept", stdin=b"mine")
    for stage in ("prepare", "create", "start", "expose", "ready"):
        ground.advance(machine, stage)
    assert ground.words(machine, "cat", "/root/kept") == b"mine"


@pytest.mark.parametrize("done", BROKEN_OFF, ids=lambda done: done[-1] if done else "nothing")
def test_a_delete_after_any_call_leaves_nothing(ground: Ground, done: tuple[str, ...]) -> None:
    machine = ground.machine()
    for stage in done:
        ground.advance(machine, stage)
    ground.driver.delete(machine.handle)
    assert ground.driver.look(machine.handle) is None
    assert machine.id not in ground.sighted()
    assert not any(ground.around.port_answers(machine, port) for port in machine.ports)
    # Everything it had is free.
    again = replace(ground.machine(), address=machine.address, ports=machine.ports)
    for stage in STAGES:
        ground.advance(again, stage)
    assert _seen(ground, again.handle) == Seen.RUNNING


@pytest.mark.parametrize("force", [False, True])
def test_stop_right_after_start_is_effective(ground: Ground, force: bool) -> None:
    machine = ground.machine()
    for stage in ("prepare", "create", "start"):
        ground.advance(machine, stage)
    ground.driver.stop(machine.handle, force=force)
    assert _seen(ground, machine.handle) == Seen.STOPPED


def test_a_stop_keeps_the_disk(ground: Ground) -> None:
    machine = ground.up()
    first = ground.answers(machine).host_key
    ground.words(machine, "tee", "/root/kept", stdin=b"\x00\xffmine")
    ground.driver.stop(machine.handle, force=False)
    ground.driver.start(machine.handle)
    assert ground.answers(machine).host_key == first, (
        "the guest keeps its host key, so that SSH clients do not warn"
    )
    assert ground.words(machine, "cat", "/root/kept") == b"\x00\xffmine"


def test_ports_open_and_close(ground: Ground) -> None:
    machine = ground.up()
    (port,) = machine.ports
    assert ground.around.port_answers(machine, port)
    ground.driver.hide(machine.handle)
    assert not ground.around.port_answers(machine, port)
    ground.driver.expose(machine)
    assert ground.around.port_answers(machine, port)


def test_limits_change(ground: Ground) -> None:
    machine = ground.up()
    larger = replace(machine, vcpus=2, ram_bytes=512 * MIB, disk_bytes=3 * GIB)
    if not ground.can(Capability.LIVE_RESIZE):
        assert refused(lambda: ground.driver.resize(larger))
        ground.driver.stop(machine.handle, force=False)
    for _ in range(2):
        ground.driver.resize(larger)
    seen = ground.driver.look(machine.handle)
    assert seen is not None
    assert (seen.vcpus, seen.ram_bytes, seen.disk_bytes, seen.altered) == (2, 512 * MIB, 3 * GIB, False)
    assert seen.seen == (Seen.RUNNING if ground.can(Capability.LIVE_RESIZE) else Seen.STOPPED)


def test_limits_can_shrink_while_stopped(ground: Ground) -> None:
    machine = ground.up(vcpus=2, ram_bytes=512 * MIB)
    ground.driver.stop(machine.handle, force=True)
    ground.driver.resize(replace(machine, vcpus=1, ram_bytes=256 * MIB))
    ground.driver.start(machine.handle)
    ground.answers(machine)
    seen = ground.driver.look(machine.handle)
    assert seen is not None
    assert (seen.vcpus, seen.ram_bytes) == (1, 256 * MIB)


def test_calls_on_a_missing_instance(ground: Ground) -> None:
    """Calls that end something succeed; calls that need something report that it is missing."""
    driver, machine = ground.driver, ground.machine(handle=Handle(UNKNOWN, ground.host))
    handle = machine.handle
    driver.stop(handle, force=False)
    driver.stop(handle, force=True)
    driver.hide(handle)
    driver.delete(handle)
    driver.delete_snapshot(handle, "snp_0000000000000001")
    driver.delete_image("img_unknown")
    assert driver.look(handle) is None
    assert driver.console(handle) == b""
    needing = (
        lambda: driver.start(handle),
        lambda: driver.expose(machine),
        lambda: driver.ready(machine),
        lambda: driver.resize(machine),
        lambda: driver.run(handle, ("true",), stdin=b"", seconds_max=5),
        lambda: driver.command_state(handle),
        lambda: driver.snapshot(handle, "snp_0000000000000001"),
        lambda: driver.restore(handle, "snp_0000000000000001"),
        lambda: driver.publish(handle, "img_0000000000000001"),
    )
    assert [refused(call) for call in needing] == ["engine_missing"] * len(needing)
    assert UNKNOWN not in ground.sighted()


def test_calls_before_create_are_refused(ground: Ground) -> None:
    machine = ground.machine(project=7)
    ground.driver.prepare(machine)
    with pytest.raises(EngineRefused):
        ground.driver.create(replace(machine, image="img_unknown"))
    assert ground.driver.look(machine.handle) is None
    ground.create(machine)
    if not ground.can(Capability.CREATE_STOPPED):
        assert _seen(ground, machine.handle) in (Seen.PENDING, Seen.RUNNING)
        return
    with pytest.raises(EngineRefused):
        ground.driver.run(machine.handle, ("true",), stdin=b"", seconds_max=5)
    with pytest.raises(DoesNotBoot):
        ground.driver.ready(machine)
    assert _seen(ground, machine.handle) == Seen.STOPPED


def test_guest_that_does_not_boot_is_reported(ground: Ground) -> None:
    machine = ground.machine(image=ground.around.image_broken)
    for stage in ("prepare", "create", "start", "expose"):
        ground.advance(machine, stage)
    with pytest.raises(DoesNotBoot):
        ground.answers(machine)
    ground.driver.delete(machine.handle)
    assert ground.driver.look(machine.handle) is None


def test_sightings_are_complete(ground: Ground) -> None:
    before = ground.sighted()
    machines = [ground.machine(project=number) for number in (1, 1, 2)]
    for machine in machines:
        ground.driver.prepare(machine)
        ground.create(machine)
    ground.driver.start(machines[0].handle)
    assert ground.sighted() == before | {machine.id for machine in machines}


def test_network_can_be_removed_after_its_last_instance(ground: Ground) -> None:
    machine = ground.machine(project=9)
    ground.driver.prepare(machine)
    ground.create(machine)
    ground.driver.delete(machine.handle)
    for _ in range(2):
        ground.driver.retire(machine.network)
    again = ground.up(project=9)
    assert _seen(ground, again.handle) == Seen.RUNNING
    ground.driver.delete(again.handle)
    ground.driver.retire(machine.network)


def _seen(ground: Ground, handle: Handle) -> Seen | None:
    found = ground.driver.look(handle)
    return None if found is None else found.seen
