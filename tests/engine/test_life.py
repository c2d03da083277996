"""The life cycle of one instance on the real engine."""

import msgspec
import pytest
from tests.engine.conftest import GIB, MIB, MachineMaker, launched, seen_as
from tests.engine.login import Login
from tests.engine.sandbox import ENGINE, INSIDE_ADDRESS, Sandbox

from teraflock.drivers.lxd import names
from teraflock.drivers.lxd.driver import Lxd
from teraflock.instance.driver import CommandState, Machine, Ran, Seen

STATE = "/var/lib/teraflock/$(cat /etc/machine-id)"


def test_ssh_answers_from_outside_with_the_reported_key(
    driver: Lxd, sandbox: Sandbox, login: Login, a_machine: MachineMaker
) -> None:
    machine = a_machine()
    key = launched(driver, machine)
    port = machine.ports[0].host_port
    by_private = login.run(machine.address, 22, key, "hostname")
    by_port = login.run(INSIDE_ADDRESS, port, key, "hostname")
    by_loopback = login.run("127.0.0.1", port, key, "hostname")
    from_outside = sandbox.outside(*login.words(INSIDE_ADDRESS, port, key, "hostname"))
    for answer in (by_private, by_port, by_loopback, from_outside):
        assert (answer.stdout, answer.returncode) == (f"{machine.hostname}\n", 0), answer.stderr
    wrong = login.run(machine.address, 22, login.public_key, "hostname")
    assert wrong.returncode != 0
    assert "HOST IDENTIFICATION HAS CHANGED" in wrong.stderr


def test_every_call_is_idempotent(driver: Lxd, a_machine: MachineMaker) -> None:
    machine = a_machine()
    for _ in range(2):
        driver.prepare(machine)
        driver.create(machine)
    for _ in range(2):
        driver.start(machine.handle)
        driver.expose(machine)
    key = launched(driver, machine)
    assert launched(driver, machine) == key, "an instance that ran keeps its host key"
    for force in (False, False, True):
        driver.stop(machine.handle, force=force)
        assert seen_as(driver, machine) == Seen.STOPPED
    for _ in range(2):
        driver.hide(machine.handle)
        driver.delete(machine.handle)
        driver.stop(machine.handle, force=True)
        assert driver.look(machine.handle) is None
    assert list(driver.sightings()) == []


def test_a_stop_right_after_the_start_is_not_lost(driver: Lxd, a_machine: MachineMaker) -> None:
    machine = a_machine()
    driver.prepare(machine)
    driver.create(machine)
    driver.start(machine.handle)
    driver.stop(machine.handle, force=False)
    assert seen_as(driver, machine) == Seen.STOPPED


def test_limits_hold_and_change_while_the_guest_runs(driver: Lxd, a_machine: MachineMaker) -> None:
    machine = a_machine()
    launched(driver, machine)
    grown = msgspec.structs.replace(machine, vcpus=2, ram_bytes=768 * MIB, disk_bytes=3 * GIB)
    eat = "x = bytearray(600 << 20); print(len(x))"
    fill = "import os; f, part = open('/fill', 'wb'), os.urandom(1 << 22)\nwhile True: f.write(part)"
    assert ran(driver, machine, "python3", "-c", eat).exit_code == 137, "600 MiB must not fit into 512"
    assert ran(driver, machine, "nproc").stdout == b"1\n"
    full = ran(driver, machine, "python3", "-c", fill).stderr
    assert b"No space left" in full or b"quota exceeded" in full
    size = int(ran(driver, machine, "stat", "-c", "%s", "/fill").stdout)
    assert size < 2 * GIB
    ran(driver, machine, "rm", "/fill")
    driver.resize(grown)
    assert ran(driver, machine, "nproc").stdout == b"2\n"
    assert ran(driver, machine, "python3", "-c", eat).stdout == b"629145600\n"
    seen = driver.look(machine.handle)
    assert seen
    assert (seen.vcpus, seen.ram_bytes, seen.disk_bytes) == (2, 768 * MIB, 3 * GIB)
    driver.resize(machine)
    assert ran(driver, machine, "nproc").stdout == b"1\n"
    assert ran(driver, machine, "python3", "-c", eat).exit_code == 137


def test_a_command_is_a_list_of_words(driver: Lxd, a_machine: MachineMaker) -> None:
    machine = a_machine(environment={"FLOCK": "te ra; $(id)"})
    launched(driver, machine)
    words = (
        "python3",
        "-c",
        "import os, sys; print(sys.argv[1:], os.environ['FLOCK'])",
        "; reboot",
        "$(id)",
        "`",
    )
    answer = ran(driver, machine, *words)
    assert answer.stdout.decode() == "['; reboot', '$(id)', '`'] te ra; $(id)\n"
    both = "import sys; d = sys.stdin.buffer.read(); print(len(d)); print('no', file=sys.stderr); sys.exit(7)"
    answer = driver.run(machine.handle, ("python3", "-c", both), stdin=b"x" * 300_000, seconds_max=30)
    assert (answer.exit_code, answer.stdout, answer.stderr) == (7, b"300000\n", b"no\n")
    slow = driver.run(machine.handle, ("sleep", "60"), stdin=b"", seconds_max=0.2)
    assert slow.exit_code == 124
    assert ran(driver, machine, "no-such-program").exit_code == 127


def test_command_runs_once_and_its_result_is_kept(driver: Lxd, a_machine: MachineMaker) -> None:
    program = "import sys; print('said', sys.argv[1]); sys.exit(3)"
    machine = a_machine(command=("python3", "-c", program, "a'b\"c; $x"))
    assert driver_without_command(driver, a_machine) is None
    launched(driver, machine)
    ran(driver, machine, "sh", "-c", f"until [ -s {STATE}/command.exit ]; do sleep 0.1; done")
    state = driver.command_state(machine.handle)
    assert state is not None
    assert (state.exit_code, state.log) == (3, b"said a'b\"c; $x\n")
    driver.stop(machine.handle, force=True)
    assert driver.command_state(machine.handle) == state
    driver.start(machine.handle)
    launched(driver, machine)
    ran(driver, machine, "systemctl", "start", "teraflock-command")
    assert driver.command_state(machine.handle) == state, "a command that ended does not run again"


def driver_without_command(driver: Lxd, a_machine: MachineMaker) -> object:
    machine = a_machine()
    driver.prepare(machine)
    driver.create(machine)
    return driver.command_state(machine.handle)


def test_user_data_runs_once_if_it_is_a_script(driver: Lxd, a_machine: MachineMaker) -> None:
    script = "#!/bin/sh\ncat >> /root/done <<'end'\nran {{ config_get('user.host-key', '') }} {% if %} $HOME\nend\n"
    machine, other = a_machine(user_data=script), a_machine(user_data="not: a script\n")
    launched(driver, machine)
    launched(driver, other)
    ran(driver, machine, "sh", "-c", f"until [ -s {STATE}/first-boot.exit ]; do sleep 0.1; done")
    ran(driver, other, "sh", "-c", f"until [ -e {STATE}/first-boot.begun ]; do sleep 0.1; done")
    once = ran(driver, machine, "cat", "/root/done").stdout
    assert once == b"ran {{ config_get('user.host-key', '') }} {% if %} $HOME\n", (
        "braces in user data are not a template"
    )
    driver.stop(machine.handle, force=False)
    driver.start(machine.handle)
    launched(driver, machine)
    ran(driver, machine, "systemctl", "start", "teraflock-first-boot")
    assert ran(driver, machine, "cat", "/root/done").stdout == once
    assert ran(driver, other, "cat", "/etc/teraflock/user-data").stdout == b"not: a script\n"
    assert ran(driver, other, "systemctl", "--failed", "--plain", "--no-legend").stdout == b""


def test_interrupted_user_data_counts_as_ended_at_the_next_start(
    driver: Lxd, a_machine: MachineMaker
) -> None:
    machine = a_machine(user_data="#!/bin/sh\necho begun\nsleep 1000\n")
    launched(driver, machine)
    ran(driver, machine, "sh", "-c", "until [ -s /var/log/teraflock/user-data.log ]; do sleep 0.1; done")
    state = driver.user_data_state(machine.handle)
    assert state is not None
    assert (state.exit_code, state.log) == (None, b"begun\n")
    driver.stop(machine.handle, force=True)
    driver.start(machine.handle)
    launched(driver, machine)
    ran(driver, machine, "sh", "-c", f"until [ -s {STATE}/first-boot.exit ]; do sleep 0.1; done")
    state = driver.user_data_state(machine.handle)
    assert state is not None
    assert (state.exit_code, b"cut off" in state.log) == (143, True)


def test_guest_cannot_fake_the_state_of_its_command(driver: Lxd, a_machine: MachineMaker) -> None:
    """The guest writes a folder, a link to a device, or text in place of its exit code and log."""
    machine = a_machine(command=("sleep", "1000"))
    launched(driver, machine)
    exit_code = f"/var/lib/teraflock/{names.machine_id(machine.id)}/command.exit"
    for path in ("/var/log/teraflock/command.log", exit_code):
        ran(driver, machine, "rm", "-f", path)
        ran(driver, machine, "mkdir", "-p", path)
        assert driver.command_state(machine.handle) == CommandState(exit_code=None, log=b"")
        ran(driver, machine, "rmdir", path)
        ran(driver, machine, "ln", "-s", "/dev/zero", path)
        assert driver.command_state(machine.handle) == CommandState(exit_code=None, log=b"")
        ran(driver, machine, "rm", path)
    ran(driver, machine, "sh", "-c", f"echo many words that are no number > {exit_code}")
    assert driver.command_state(machine.handle) == CommandState(exit_code=255, log=b"")


def test_snapshot_restores_the_disk(driver: Lxd, a_machine: MachineMaker) -> None:
    machine = a_machine()
    launched(driver, machine)
    ran(driver, machine, "sh", "-c", "echo first > /root/note; sync")
    for _ in range(2):
        driver.snapshot(machine.handle, "snp_one")
    ran(driver, machine, "sh", "-c", "echo second > /root/note")
    driver.resize(msgspec.structs.replace(machine, vcpus=2, ram_bytes=600 * MIB))
    for _ in range(2):
        driver.restore(machine.handle, "snp_one")
    assert seen_as(driver, machine) == Seen.STOPPED
    driver.start(machine.handle)
    launched(driver, machine)
    assert ran(driver, machine, "cat", "/root/note").stdout == b"first\n"
    seen = driver.look(machine.handle)
    assert seen is not None
    assert (seen.vcpus, seen.ram_bytes) == (2, 600 * MIB), (
        "the disk is restored, but not the settings of that time"
    )
    for _ in range(2):
        driver.delete_snapshot(machine.handle, "snp_one")


@pytest.mark.long("packs and unpacks a whole disk")
def test_image_from_an_instance_boots_as_a_new_guest(
    driver: Lxd, login: Login, a_machine: MachineMaker
) -> None:
    machine = a_machine(command=("true",))
    first_key = launched(driver, machine)
    ran(driver, machine, "sh", "-c", "echo kept > /root/note")
    driver.publish(machine.handle, "img_mine")
    driver.publish(machine.handle, "img_mine")
    assert set(driver.images()) == {"img_base", "img_mine"}
    other = a_machine(image="img_mine", command=("echo", "mine"))
    key = launched(driver, other)
    assert key != first_key
    answer = login.run(other.address, 22, key, "cat /root/note /etc/hostname /root/.ssh/authorized_keys")
    assert answer.stdout == f"kept\n{other.hostname}\n{login.public_key}\n"
    ids = [ran(driver, each, "cat", "/etc/machine-id").stdout for each in (machine, other)]
    assert ids[0] != ids[1]
    ran(driver, other, "sh", "-c", f"until [ -s {STATE}/command.exit ]; do sleep 0.1; done")
    state = driver.command_state(other.handle)
    assert state is not None
    assert state.exit_code == 0
    for _ in range(2):
        driver.delete_image("img_mine")
    assert set(driver.images()) == {"img_base"}
    assert ran(driver, other, "cat", "/root/note").stdout == b"kept\n", "instances do not need their image"


def test_a_guest_sees_its_own_share_of_memory_and_processors(
    driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker
) -> None:
    if not sandbox.daemon.lxcfs.answers():
        pytest.skip("lxcfs is not installed: guests see the whole host")
    machine = a_machine()
    launched(driver, machine)

    def shares() -> tuple[int, int, int]:
        told = dict(
            line.split(":")
            for line in ran(driver, machine, "cat", "/proc/meminfo").stdout.decode().splitlines()
        )
        cpus = ran(driver, machine, "grep", "-c", "^processor", "/proc/cpuinfo").stdout
        return int(told["MemTotal"].split()[0]) << 10, int(cpus), int(ran(driver, machine, "nproc").stdout)

    assert shares() == (512 * MIB, 1, 1)
    free = ran(driver, machine, "free", "-m").stdout.decode().splitlines()[1].split()
    assert free[1] == "512", "as `free -m` shows it"
    driver.resize(msgspec.structs.replace(machine, vcpus=2, ram_bytes=768 * MIB))
    assert shares() == (768 * MIB, 2, 2)
    sandbox.daemon.kill()
    sandbox.daemon.ensure()
    assert shares() == (768 * MIB, 2, 2), "guests keep their lxcfs when the daemon dies"


def test_crashed_lxcfs_is_replaced_for_the_next_start(
    driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker
) -> None:
    lxcfs = sandbox.daemon.lxcfs
    if not lxcfs.answers():
        pytest.skip("lxcfs is not installed: guests see the whole host")
    machine = a_machine()
    launched(driver, machine)
    sandbox.inside_command("sh", "-c", f"kill -9 $(cat {sandbox.folder}/{ENGINE}.lxcfs.pid)")
    assert not lxcfs.answers()
    broken = ran(driver, machine, "cat", "/proc/meminfo")
    assert (broken.exit_code, b"not connected" in broken.stderr) == (1, True)
    sandbox.daemon.ensure()
    assert lxcfs.answers()
    driver.stop(machine.handle, force=False)
    driver.start(machine.handle)
    launched(driver, machine)
    assert b"524288 kB" in ran(driver, machine, "head", "-n1", "/proc/meminfo").stdout


def ran(driver: Lxd, machine: Machine, *command: str) -> Ran:
    return driver.run(machine.handle, command, stdin=b"", seconds_max=60)
