"""Every health check, on fake machines made of files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from teraflock.app.installation import health
from teraflock.app.installation.health import (
    Finding,
    HealthVerdict,
    ThisMachine,
    check_machine,
    guarded,
    is_well,
)
from teraflock.base.errors import Unavailable


def machine(
    root: Path, files: dict[str, str] | None = None, *, is_real: bool = True, programs: str = ""
) -> ThisMachine:
    for name, content in (files or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    has = programs.split()
    return ThisMachine(
        root=root, home=root / "home", is_real=is_real, has_program=lambda name: name if name in has else None
    )


INOTIFY = "proc/sys/fs/inotify/max_user_instances"
PROCESS_IDS = "proc/sys/kernel/pid_max"
BRIDGES = "proc/sys/net/bridge/bridge-nf-call-iptables"
CONTROLLERS = "sys/fs/cgroup/cgroup.controllers"
APPARMOR = "sys/module/apparmor/parameters/enabled"


@pytest.mark.parametrize(
    ("check", "files", "verdict", "seen"),
    [
        (health.inotify, {INOTIFY: "1048576\n"}, HealthVerdict.OK, "1048576"),
        (health.inotify, {INOTIFY: "8192\n"}, HealthVerdict.WARNING, "one guest can use them all"),
        (health.process_ids, {PROCESS_IDS: "4194304\n"}, HealthVerdict.OK, "4194304"),
        (health.process_ids, {PROCESS_IDS: "32768\n"}, HealthVerdict.WARNING, "2 guests can use them all"),
        (health.process_ids, {}, HealthVerdict.WARNING, "not readable"),
        (health.inotify, {INOTIFY: "128\n"}, HealthVerdict.WRONG, "about 16 guests"),
        (health.inotify, {}, HealthVerdict.WARNING, "not readable"),
        (health.bridge_filter, {BRIDGES: "1\n"}, HealthVerdict.OK, "passes the firewall"),
        (health.bridge_filter, {BRIDGES: "0\n"}, HealthVerdict.WRONG, "turned off"),
        (health.bridge_filter, {}, HealthVerdict.WRONG, "not loaded"),
        (health.cgroups, {CONTROLLERS: "cpuset cpu io memory pids\n"}, HealthVerdict.OK, "v2"),
        (health.cgroups, {CONTROLLERS: "cpu pids\n"}, HealthVerdict.WRONG, "without memory"),
        (
            health.cgroups,
            {CONTROLLERS: "cpu memory pids\n", "proc/1/cgroup": "0::/init.scope\n"},
            HealthVerdict.OK,
            "v2",
        ),
        (
            health.cgroups,
            {CONTROLLERS: "cpu memory pids\n", "proc/1/cgroup": "0::/pod/one\n"},
            HealthVerdict.WRONG,
            "process 1 is in /pod/one",
        ),
        (
            health.cgroups,
            {
                CONTROLLERS: "cpu memory pids\n",
                "proc/1/cgroup": "0::/pod\n",
                "sys/fs/cgroup/pod/cgroup.subtree_control": "cpu memory pids\n",
            },
            HealthVerdict.OK,
            "v2",
        ),
        (
            health.cgroups,
            {f"sys/fs/cgroup/{each}/x": "" for each in ("cpu", "memory", "pids")},
            HealthVerdict.OK,
            "v1",
        ),
        (health.cgroups, {"sys/fs/cgroup/cpu/x": ""}, HealthVerdict.WRONG, "no memory, pids"),
        (health.app_armor, {APPARMOR: "Y\n"}, HealthVerdict.OK, "enabled"),
        (health.app_armor, {APPARMOR: "N\n"}, HealthVerdict.WARNING, "off"),
        (health.app_armor, {}, HealthVerdict.WARNING, "off"),
        (health.nftables, {}, HealthVerdict.WRONG, "no `nft`"),
    ],
)
def test_kernel_checks(
    tmp_path: Path,
    check: Callable[[ThisMachine], Finding],
    files: dict[str, str],
    verdict: HealthVerdict,
    seen: str,
) -> None:
    found = check(machine(tmp_path, files))
    assert (found.verdict, seen in found.seen) == (verdict, True), found
    assert bool(found.repair) is (verdict is not HealthVerdict.OK)


def test_the_simulated_engine_needs_nothing_of_the_kernel(tmp_path: Path) -> None:
    found = check_machine(machine(tmp_path, is_real=False, programs="ssh scp ssh-keygen"))
    assert is_well(found)
    assert {each.check for each in found if each.verdict is HealthVerdict.SKIPPED} == {
        "nftables",
        "br_netfilter",
        "inotify",
        "process ids",
        "cgroups",
        "AppArmor",
    }


def test_every_failed_check_has_a_repair(tmp_path: Path) -> None:
    found = check_machine(machine(tmp_path))
    wrong = [each for each in found if each.verdict is HealthVerdict.WRONG]
    assert {"ssh client", "nftables", "br_netfilter", "cgroups"} <= {each.check for each in wrong}
    assert all(each.repair for each in wrong)
    assert not is_well(found)


def test_a_check_that_fails_is_a_finding() -> None:
    def away() -> Finding:
        raise Unavailable("The engine is away", hint="Start it")

    def shut() -> Finding:
        raise PermissionError(13, "Permission denied", "/x")

    assert guarded("engine", away) == health.wrong("engine", "The engine is away", "Start it")
    assert guarded("engine", shut).verdict is HealthVerdict.WRONG
