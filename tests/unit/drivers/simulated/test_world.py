"""The simulated world behaves like a real engine: reboots, manual changes, and cards and ports in use."""

import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.unit.drivers.simulated.worlds import (
    FIRST_HOST,
    NETWORK,
    SECOND_HOST,
    Bench,
    bench,
    machine,
    opened,
)

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput, UnknownName
from teraflock.drivers.simulated.faults import Kind, SimulatedFault
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.model import Guest
from teraflock.drivers.simulated.store import FileWorld
from teraflock.drivers.simulated.trouble import Trouble
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet.model import GpuKind
from teraflock.instance.driver import Seen
from teraflock.instance.engine_errors import EngineBusy, EngineDown, EngineRefused, NoRoom

CARD = "0000:01:00.0"


@pytest.fixture(params=["memory", "file"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return bench(request.param, tmp_path)


def seen(table: Bench) -> dict[str, Seen]:
    return {sighting.instance_id: sighting.seen for sighting in table.engine.sightings()}


def test_a_guest_answers_when_it_is_up(table: Bench) -> None:
    table.launch(machine(1))
    assert not table.engine.ready(machine(1)).ready
    table.wait(1)
    assert table.engine.ready(machine(1)).ready


def test_a_listing_changes_with_the_time_and_with_another_process(tmp_path: Path) -> None:
    table = bench("file", tmp_path)
    table.launch(machine(1))
    first = list(table.engine.sightings())
    assert all(a is b for a, b in zip(first, table.engine.sightings(), strict=True)), "nothing is made anew"
    Trouble(FileWorld(tmp_path / "world.db")).stopped_by_hand("ins_0001")
    assert seen(table) == {"ins_0001": Seen.STOPPED}
    table.trouble.taken_back("ins_0001", table.clock.now() + timedelta(seconds=5))
    assert seen(table) == {"ins_0001": Seen.STOPPED}
    table.wait(5)
    assert seen(table) == {}


def test_a_listing_does_not_show_what_was_never_committed(tmp_path: Path) -> None:
    table = bench("file", tmp_path)
    table.launch(machine(1))
    with suppress(ZeroDivisionError), table.world.write() as turn:
        turn.remove(Guest, "ins_0001")
        assert turn.every(Guest) == []
        raise ZeroDivisionError
    assert seen(table) == {"ins_0001": Seen.RUNNING}


def test_guests_are_stopped_after_a_reboot(table: Bench) -> None:
    for number, host in ((1, FIRST_HOST), (2, FIRST_HOST), (3, SECOND_HOST)):
        table.launch(machine(number, host=host))
    table.trouble.host_goes_away(FIRST_HOST)
    assert [host.name for host in table.engine.hosts()] == [SECOND_HOST]
    assert seen(table) == {"ins_0003": Seen.RUNNING}
    for call in (table.engine.look, table.engine.start, table.engine.delete):
        with pytest.raises(EngineDown):
            call(machine(1).handle)
    table.trouble.host_comes_back(FIRST_HOST)
    assert seen(table) == {"ins_0001": Seen.STOPPED, "ins_0002": Seen.STOPPED, "ins_0003": Seen.RUNNING}
    table.engine.start(machine(1).handle)
    assert seen(table)["ins_0001"] == Seen.RUNNING


def test_guests_keep_running_after_a_lost_connection(table: Bench) -> None:
    table.launch(machine(1))
    table.trouble.host_goes_away(FIRST_HOST)
    table.trouble.host_comes_back(FIRST_HOST, rebooted=False)
    assert seen(table) == {"ins_0001": Seen.RUNNING}


def test_an_engine_that_is_down_answers_nothing(table: Bench) -> None:
    table.launch(machine(1))
    table.trouble.engine_goes_down()
    for call in (table.engine.hosts, table.engine.sightings, table.engine.images):
        with pytest.raises(EngineDown):
            call()
    table.trouble.engine_comes_back()
    assert seen(table) == {"ins_0001": Seen.RUNNING}


def test_engine_without_hosts_counts_as_down(table: Bench) -> None:
    table.trouble.host_goes_away(FIRST_HOST)
    table.trouble.host_goes_away(SECOND_HOST)
    with pytest.raises(EngineDown):
        table.engine.hosts()


def test_outside_changes_are_visible(table: Bench) -> None:
    for number in (1, 2, 3, 4):
        table.launch(machine(number))
    table.trouble.stopped_by_hand("ins_0001")
    table.trouble.deleted_by_hand("ins_0002")
    table.trouble.dies("ins_0003")
    table.trouble.limits_changed_by_hand("ins_0004", vcpus=7, ram_bytes=1 << 31)
    assert seen(table) == {"ins_0001": Seen.STOPPED, "ins_0003": Seen.STOPPED, "ins_0004": Seen.RUNNING}
    found = table.engine.look(machine(4).handle)
    assert found is not None
    assert (found.vcpus, found.ram_bytes) == (7, 1 << 31)
    table.launch(machine(2))  # its address is free again


def test_calls_fail_while_an_instance_is_busy(table: Bench) -> None:
    table.launch(machine(1))
    table.trouble.busy_until("ins_0001", table.clock.now() + timedelta(seconds=5))
    with pytest.raises(EngineBusy):
        table.engine.stop(machine(1).handle, force=True)
    with pytest.raises(EngineBusy):
        table.engine.delete(machine(1).handle)
    table.wait(5)
    table.engine.delete(machine(1).handle)


def test_card_is_in_one_running_guest(table: Bench) -> None:
    one, two = machine(1, gpus=(CARD,)), machine(2, gpus=(CARD,))
    table.launch(one)
    with pytest.raises(EngineRefused, match="card"):
        table.launch(two)
    table.engine.stop(one.handle, force=True)
    table.launch(two)
    with pytest.raises(EngineRefused, match="card"):
        table.engine.start(one.handle)
    table.launch(machine(3, host=SECOND_HOST, gpus=(CARD,)))  # a card in the same slot of another host


def test_a_port_of_a_host_leads_to_one_guest(table: Bench) -> None:
    table.launch(machine(1))
    with pytest.raises(EngineRefused, match="port"):
        table.launch(replace(machine(2), ports=machine(1).ports))
    table.engine.hide(machine(1).handle)
    table.engine.expose(replace(machine(2), ports=machine(1).ports))
    table.launch(replace(machine(3, host=SECOND_HOST), ports=machine(1).ports))


def test_cards_and_disks_change_only_when_allowed(table: Bench) -> None:
    table.launch(machine(1))
    with pytest.raises(EngineRefused, match="Stop"):
        table.engine.resize(replace(machine(1, gpus=(CARD,))))
    with pytest.raises(EngineRefused, match="shrink"):
        table.engine.resize(replace(machine(1), disk_bytes=1 << 30))
    table.engine.stop(machine(1).handle, force=False)
    table.engine.resize(machine(1, gpus=(CARD,)))


def test_network_in_use_cannot_be_removed(table: Bench) -> None:
    table.launch(machine(1))
    with pytest.raises(EngineRefused, match="still has simulated instances"):
        table.engine.retire(NETWORK)
    with pytest.raises(EngineRefused, match="network"):
        table.engine.create(machine(2, host=SECOND_HOST))


def test_a_network_from_before_it_had_a_name_is_used_again(table: Bench) -> None:
    table.launch(machine(1))
    named = replace(NETWORK, name="default", domain="vision.internal")
    table.launch(replace(machine(2), network=named))
    with pytest.raises(EngineRefused, match="with other addresses"):
        table.engine.prepare(replace(machine(3), network=replace(named, subnet="10.128.16.0/20")))


def test_installations_do_not_see_each_other() -> None:
    world = MemoryWorld()
    ours, theirs = Bench(world, mark="ours"), Bench(world, mark="theirs", image="theirs")
    ours.launch(machine(1, gpus=(CARD,)))
    assert seen(theirs) == {}
    assert theirs.engine.look(machine(1).handle) is None
    theirs.engine.delete(machine(1).handle)
    assert seen(ours) == {"ins_0001": Seen.RUNNING}
    assert (list(ours.engine.images()), list(theirs.engine.images())) == (["base"], ["theirs"])


def test_cloud_takes_minutes_and_chooses_the_host() -> None:
    table = Bench(MemoryWorld(), style="cloud")
    one = machine(1, host="")
    assert list(table.engine.hosts()) == []
    table.launch(one)
    assert seen(table) == {"ins_0001": Seen.PENDING}
    table.wait(89)
    assert not table.engine.ready(one).ready
    assert seen(table) == {"ins_0001": Seen.PENDING}
    table.wait(1)
    assert seen(table) == {"ins_0001": Seen.RUNNING}
    assert not table.engine.ready(one).ready
    table.wait(1)
    assert table.engine.ready(one).ready


def test_a_cloud_may_fail_half_way() -> None:
    table = Bench(MemoryWorld(), style="cloud")
    one = machine(1, host="")
    table.trouble.faults(SimulatedFault(call="create", kind=Kind.LATER))
    table.launch(one)
    assert seen(table) == {"ins_0001": Seen.PENDING}
    table.wait(46)
    assert seen(table) == {"ins_0001": Seen.BROKEN}
    with pytest.raises(NoRoom):
        table.engine.ready(one)
    table.engine.delete(one.handle)
    assert seen(table) == {}


def test_cloud_reclaims_after_notice() -> None:
    table = Bench(MemoryWorld(), style="cloud")
    one = machine(1, host="")
    table.launch(one)
    at = table.clock.now() + timedelta(minutes=2)
    table.trouble.taken_back("ins_0001", at)
    assert [sighting.leaving_at for sighting in table.engine.sightings()] == [at]
    table.wait(120)
    assert seen(table) == {}
    assert table.engine.look(one.handle) is None
    table.launch(one)
    assert seen(table) == {"ins_0001": Seen.PENDING}


def test_world_survives_a_killed_process(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.unit.drivers.simulated.worlds import machine, opened\n"
        "from teraflock.base.clock import SystemClock\n"
        "engine = opened(Path(sys.argv[1]), SystemClock(), faults='create:half:killed@ins_0002', hosts='1x1xT4')\n"
        "engine.build_image('base', 'base')\n"
        "for number in (1, 2, 3):\n"
        "    engine.prepare(machine(number)); engine.create(machine(number))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    command = [sys.executable, "-c", code, str(tmp_path)]
    killed = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    engine = opened(tmp_path, SystemClock(), hosts="1x1xT4")
    found = {sighting.instance_id: sighting.seen for sighting in engine.sightings()}
    assert found == {"ins_0001": Seen.STOPPED, "ins_0002": Seen.BROKEN}
    again = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert again.returncode == 0, again.stderr.decode() + " (a fault that happened does not happen again)"
    assert Counter(sighting.seen for sighting in engine.sightings()) == {Seen.STOPPED: 3}
    engine.world.close()


def test_many_threads_and_two_connections_share_a_world(tmp_path: Path) -> None:
    first, second = Bench(FileWorld(tmp_path / "world.db")), Bench(FileWorld(tmp_path / "world.db"))

    def launch(number: int) -> None:
        (first if number % 2 else second).launch(machine(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(launch, range(1, 61)))
    assert seen(first) == seen(second) == {f"ins_{number:04d}": Seen.RUNNING for number in range(1, 61)}
    Trouble(first.world).engine_goes_down()
    with pytest.raises(EngineDown):
        second.engine.hosts()


def test_fleet_is_parsed() -> None:
    hosts = fleet("2x8xV100,1x0,1x7xA100 80GB:1g.10gb")
    assert [host.name for host in hosts] == [f"simulated-{number:04d}" for number in (1, 2, 3, 4)]
    assert [len(host.gpus) for host in hosts] == [8, 8, 0, 7]
    assert {gpu.gpu for gpu in hosts[0].gpus} == {"V100-SXM2"}
    assert {(gpu.gpu, gpu.kind) for gpu in hosts[3].gpus} == {("A100-SXM4-80:1g.10gb", GpuKind.MIG)}
    assert all(len({gpu.slot for gpu in host.gpus}) == len(host.gpus) for host in hosts)
    assert all(gpu.name.startswith("Simulated ") for host in hosts for gpu in host.gpus)
    assert len({host.address for host in fleet("70000x0")}) == 70_000


@pytest.mark.parametrize("words", ["", "x", "4", "4x8", "4x0xV100", "1x65xV100", "1x1xA100 80GB:9g.90gb"])
def test_invalid_fleet_is_refused(words: str) -> None:
    with pytest.raises(BadInput):
        fleet(words)


def test_unknown_card_is_refused() -> None:
    with pytest.raises(UnknownName):
        fleet("1x1xVoodoo2")


def test_invalid_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="boot_seconds"):
        opened(tmp_path, SystemClock(), boot_seconds="soon")
