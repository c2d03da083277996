"""Attacks of a hostile tenant from inside a guest: against other tenants, the host, and the operator's
network.

Every test has two guests of different projects, or explains why one is enough. Each test also proves which
protection stops the attack: where the protection can be removed, the attack then succeeds.
"""

import ctypes
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.engine.conftest import GIB, MIB, NETWORKS, MachineMaker, launched
from tests.engine.inside import python, ran
from tests.engine.sandbox import Sandbox

from teraflock.app.installation.health import HealthVerdict
from teraflock.app.installation.isolation import BY_FILTER, judged
from teraflock.app.settings import Settings
from teraflock.drivers.lxd import confinement, ids, names, probe
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.fleet.model import DiskLimits
from teraflock.instance.driver import Machine

PROBE = Path(probe.__file__).read_bytes()


# The kernel

ADD_KEY = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(248, b"user", b"red-secret", b"RED-PASSWORD", 12, ctypes.c_long(-4)), ctypes.get_errno())
"""


def without_filter(client: LxdClient, machine: Machine) -> None:
    """Remove the system call filter, as a new hole in it would."""
    name = names.guest(machine.id)
    client.put("instances", name, "state", body={"action": "stop", "timeout": 10, "force": True})
    client.patch("instances", name, body={"config": {"security.syscalls.deny": ""}})
    client.put("instances", name, "state", body={"action": "start", "timeout": 30})


def test_every_attempt_of_the_probe_is_stopped_by_the_filter(
    driver: Lxd, client: LxdClient, red: Machine
) -> None:
    found = json.loads(ran(driver, red, "python3", "-", stdin=PROBE))
    attempts = {**found["keys"], **found["disk"], **found["surface"]}
    assert len(attempts) == 20
    assert [what for what, said in attempts.items() if said not in BY_FILTER] == []
    without_filter(client, red)
    open_doors = json.loads(ran(driver, red, "python3", "-", stdin=PROBE))
    succeeded = {**open_doors["keys"], **open_doors["disk"], **open_doors["surface"]}
    assert succeeded["create a subvolume, high bit set"] == "allowed", "only the filter stopped it"
    assert succeeded["create a subvolume, by the 32-bit door"] in ("allowed", "refused: SIGSEGV")
    assert succeeded["user namespace by unshare"] == succeeded["add a key"] == "allowed"


def test_guests_have_separate_user_ids_and_see_no_key_of_each_other(
    driver: Lxd, client: LxdClient, red: Machine, blue: Machine
) -> None:
    maps = [ran(driver, each, "cat", "/proc/self/uid_map").split() for each in (red, blue)]
    firsts = [int(each[1]) for each in maps]
    assert all(each[0] == "0" and int(each[2]) == ids.SIZE for each in maps)
    assert abs(firsts[0] - firsts[1]) >= ids.SIZE
    # The ranges must protect without the filter too: the layers are independent.
    for each in (red, blue):
        without_filter(client, each)
    serial, _ = python(driver, red, ADD_KEY).split()
    assert int(serial) > 0
    listed = ran(driver, blue, "cat", "/proc/keys")
    assert "red-secret" in ran(driver, red, "cat", "/proc/keys")
    assert "red-secret" not in listed
    assert f"{int(serial):08x}" not in listed
    read = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(64)
print(libc.syscall(250, 11, {serial}, buffer, 64), ctypes.get_errno(), buffer.value)
"""
    said = python(driver, blue, read)
    assert said.startswith("-1 ")
    assert "RED-PASSWORD" not in said


def test_range_is_reused_only_without_keys_or_processes(
    driver: Lxd, client: LxdClient, a_machine: MachineMaker, red: Machine, tmp_path: Path
) -> None:
    first = int(client.get("instances", names.guest(red.id))["config"]["security.idmap.base"])
    index = ids.index_of(first)
    assert index is not None
    assert index in ids.indexes_in_use(), "the host sees its processes"
    # A key that outlives its guest: the host keeps a session with the same ids.
    pid, let_go = kept_key(first)
    driver.delete(red.handle)
    ranges = ids.Ranges("other", tmp_path, grants=[tmp_path / "subuid"])
    assert ranges.take("new", [index]) != index
    os.close(let_go)
    os.waitpid(pid, 0)
    until_clean(index)
    successor = a_machine(NETWORKS[1])
    launched(driver, successor)
    assert "RED-KEY" not in ran(driver, successor, "cat", "/proc/keys")


def kept_key(uid: int) -> tuple[int, int]:
    """Return a process that holds a key of `uid`, and what to close to end it."""
    told_reading, told = os.pipe()
    until, let_go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(let_go)
        libc = ctypes.CDLL(None, use_errno=True)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        libc.syscall(250, 1, None)  # a session of its own
        serial = libc.syscall(248, b"user", b"RED-KEY", b"x", 1, ctypes.c_long(-3))
        os.write(told, b"made" if serial > 0 else b"none")
        os.read(until, 1)
        os._exit(0)
    os.close(until)
    assert os.read(told_reading, 4) == b"made"
    os.close(told_reading)
    os.close(told)
    return pid, let_go


def until_clean(index: int) -> None:
    """Wait until the kernel has collected unused keys, which takes a moment."""
    for _ in range(600):
        if index not in ids.indexes_in_use():
            return
        subprocess.run(["sleep", "0.1"], check=True)
    raise AssertionError("the key is still there")


def test_doctor_probe_reports_isolation_and_leaves_nothing(
    driver: Lxd, client: LxdClient, red: Machine
) -> None:
    before = client.get("instances")
    said = driver.probe(["169.254.169.254:80", f"{red.address}:22"])
    findings = judged(said, Settings())
    assert [each.check for each in findings if each.verdict is HealthVerdict.WRONG] == []
    assert driver.unconfined() == []
    assert client.get("instances") == before
    assert driver._ranges.of(names.guest(red.id)) is not None
    assert [name for name in driver._ranges._ours() if name.startswith("probe")] == []
    opened = {**said, "surface": {**said["surface"], "io_uring": "allowed"}}
    by_mistake = {each.check: each.verdict for each in judged(opened, Settings())}
    assert by_mistake["isolation: kernel surface"] is HealthVerdict.WRONG
    by_setting = {each.check: each.verdict for each in judged(opened, Settings(guest_io_uring=True))}
    assert by_setting["isolation: kernel surface"] is HealthVerdict.WARNING


# Disks


@pytest.mark.long("fills a disk in many ways")
def test_no_kind_of_write_exceeds_the_disk_limit(
    driver: Lxd, client: LxdClient, a_machine: MachineMaker
) -> None:
    """One guest is enough: data beyond its limit uses up the space of all others."""
    machine = a_machine(NETWORKS[0], disk_bytes=GIB)
    launched(driver, machine)
    ways = {
        "plain": "dd if=/dev/zero of=/root/a bs=1M count=1500; sync",
        "fallocate": "fallocate -l 1500M /root/a",
        "sparse": "truncate -s 20G /root/a; dd if=/dev/zero of=/root/a bs=1M count=1500 seek=9000 conv=notrunc; sync",
        "reflink": "dd if=/dev/urandom of=/root/a bs=1M count=200;"
        " for i in 1 2 3 4 5 6 7; do cp --reflink=auto /root/a /root/b$i; done; sync",
        "after a snapshot": "dd if=/dev/urandom of=/root/a bs=1M count=1500; sync",
    }
    for way, script in ways.items():
        if way == "after a snapshot":
            driver.snapshot(machine.handle, "snp_walk")
        said = ran(driver, machine, "sh", "-c", script)
        # Copies by reference take no space, and are allowed.
        assert way == "reflink" or "quota" in said.lower() or "No space" in said, (way, said)
        assert used_bytes(driver, client, machine) <= GIB + 64 * MIB, way
        ran(driver, machine, "sh", "-c", "rm -f /root/a /root/b*; sync")
    driver.delete_snapshot(machine.handle, "snp_walk")
    forced = "cp --reflink=always /etc/passwd /root/copy"
    assert "not permitted" in ran(driver, machine, "sh", "-c", forced)


@pytest.mark.long("creates files until a disk is full")
def test_inodes_count_against_the_disk_limit(driver: Lxd, client: LxdClient, a_machine: MachineMaker) -> None:
    machine = a_machine(NETWORKS[0], disk_bytes=400 * MIB)
    launched(driver, machine)
    script = """
import os, sys
os.mkdir("/root/many")
try:
    for number in range(1_000_000):
        with open(f"/root/many/{number:08d}", "wb") as file:
            file.write(b"x" * 2000)
        if number % 5000 == 0:
            os.sync()
    print("no limit")
except OSError as error:
    print("stopped", error.errno)
"""
    assert python(driver, machine, script).startswith("stopped")
    assert used_bytes(driver, client, machine) <= 464 * MIB


def test_lost_disk_limits_are_reported_and_recounted(driver: Lxd, sandbox: Sandbox, red: Machine) -> None:
    assert driver.hosts()[0].disk_limits is DiskLimits.HOLD
    pool = sandbox.folder / "engine" / "storage-pools" / driver._ours.pool
    sandbox.inside_command("btrfs", "qgroup", "create", "1/77", str(pool))
    subvolume = f"0/{subvolume_of(sandbox, pool, names.guest(red.id))}"
    assigned = sandbox.inside_command(
        "btrfs", "qgroup", "assign", "--no-rescan", subvolume, "1/77", str(pool)
    )
    assert driver.pool.limits() is DiskLimits.LOST, assigned.stderr
    seen = {driver.hosts()[0].disk_limits for _ in range(1)}
    assert seen == {DiskLimits.LOST}, "reported"
    for _ in range(100):
        if driver.pool.limits() is DiskLimits.HOLD:
            break
        subprocess.run(["sleep", "0.1"], check=True)
    assert driver.hosts()[0].disk_limits is DiskLimits.HOLD, "counted again"


def subvolume_of(sandbox: Sandbox, pool: Path, name: str) -> str:
    listed = sandbox.inside_command("btrfs", "subvolume", "list", str(pool)).stdout.splitlines()
    return next(line.split()[1] for line in listed if line.endswith(name))


def test_host_reports_size_and_usage_of_the_pool(driver: Lxd, red: Machine) -> None:
    size = driver.hosts()[0].disk_bytes
    assert 39 * GIB <= size <= 41 * GIB, "the pool's 40 GiB, whatever the machine has"
    grown = []
    for name in "abc":  # a guest deleted before may still be on its way out, and hide what was written
        before = settled_use(driver)
        ran(driver, red, "sh", "-c", f"dd if=/dev/urandom of=/root/{name} bs=1M count=300; sync")
        grown.append(settled_use(driver) - before)
        if grown[-1] >= 200 * MIB:
            return
    pytest.fail(f"300 MiB were written three times, and the pool grew by {grown} bytes")


def settled_use(driver: Lxd) -> int:
    """What the pool contains, once the file system has removed the guests that were deleted before."""
    used = -1
    for _ in range(30):
        subprocess.run(["sync"], check=True)
        last, used = used, driver.hosts()[0].disk_used_bytes
        if last == used:
            break
        time.sleep(1)
    return used


def test_df_shows_the_size_of_the_instance_disk(driver: Lxd, red: Machine) -> None:
    def size(*words: str) -> int:
        return int(ran(driver, red, "df", "-B1", *words).splitlines()[-1].split()[1])

    assert size("/") == red.disk_bytes
    assert size("/root") == red.disk_bytes
    driver.resize(replace(red, disk_bytes=red.disk_bytes + GIB))
    assert size("/") == red.disk_bytes + GIB, "also when it grows while the instance runs"
    assert " 3.0G " in ran(driver, red, "df", "-h", "/")


def used_bytes(driver: Lxd, client: LxdClient, machine: Machine) -> int:
    state = client.get("instances", names.guest(machine.id), "state")
    return int(state["disk"]["root"]["usage"])


# Shared limits of the host


def test_one_guest_cannot_use_up_inotify_instances(driver: Lxd, red: Machine, blue: Machine) -> None:
    hold = """
import ctypes, resource, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
libc, held = ctypes.CDLL(None, use_errno=True), 0
while held < 10_000 and libc.inotify_init() >= 0:
    held += 1
print(held, flush=True)
sys.stdin.read()
"""
    ran(driver, red, "sh", "-c", "cat > /root/hold.py", stdin=hold.encode())
    held = "sleep 60 2>/dev/null | python3 /root/hold.py > /root/held 2>&1"
    ran(driver, red, "sh", "-c", f"({held}) > /dev/null 2>&1 < /dev/null &")
    ran(driver, red, "sh", "-c", "until [ -s /root/held ]; do sleep 0.1; done")
    one = "import ctypes; print(ctypes.CDLL(None).inotify_init() >= 0)"
    assert int(ran(driver, red, "cat", "/root/held")) > 1000
    assert ran(driver, blue, "python3", "-c", one) == "True"
    assert (
        subprocess.run(["python3", "-c", one], capture_output=True, text=True, check=True).stdout == "True\n"
    )


def test_kernel_surface_follows_the_settings() -> None:
    closed, opened = (
        confinement.denied(confinement.CLOSED),
        confinement.denied(confinement.Surface(user_namespaces=True, io_uring=True, bpf=True)),
    )
    assert set(opened) < set(closed)
    assert not any(word in line for line in opened for word in ("unshare", "clone", "io_uring", "bpf"))
    assert any(line.startswith("ioctl") for line in opened), "disk limits cannot be turned off by a setting"
