"""The processor time of a project's balancers is limited, with a real cgroup. No engine is needed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from teraflock.drivers.lxd import shares

PROCESSORS = 0.2
SECONDS = 2.0
USER = 2_100_000_123


def used_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_busy_programs_get_their_share_together(tmp_path: Path) -> None:
    name = f"tera-test-share-{os.getpid()}"
    share = shares.ensure(name, PROCESSORS)
    if os.geteuid() != 0 or share is None:
        pytest.skip("cgroups need root and a hierarchy for processor time")
    for folder in ("root", "cell"):
        (tmp_path / folder).mkdir()
    command = [
        sys.executable,
        "-m",
        "teraflock.drivers.lxd.cell",
        str(USER),
        str(tmp_path),
        str(share),
        "/usr/bin/yes",
    ]
    busy = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    try:
        until = time.monotonic() + 20
        while any(Path(f"/proc/{each.pid}/comm").read_text() != "yes\n" for each in busy):
            assert time.monotonic() < until, "they did not start"
            time.sleep(0.05)
        before, began = sum(used_seconds(each.pid) for each in busy), time.monotonic()
        time.sleep(SECONDS)
        used = sum(used_seconds(each.pid) for each in busy) - before
        assert 0 < used < 2 * PROCESSORS * (time.monotonic() - began)
        assert {str(each.pid) for each in busy} <= set(share.read_text().split())
        throttled = (share.parent / "cpu.stat").read_text().split("nr_throttled ")[1].split()[0]
        assert int(throttled) > 0, "the limit held them back, not other programs"
    finally:
        for process in busy:
            process.kill()
            process.wait()
        shares.remove(name)
    assert not share.parent.exists()


def test_both_versions_of_cgroups_get_the_limit(tmp_path: Path) -> None:
    one, two, none = (tmp_path / each for each in ("one", "two", "none"))
    for folder in (one / "cpu", two, none):
        folder.mkdir(parents=True)
    (two / "cgroup.controllers").write_text("cpuset cpu memory")
    assert shares.ensure("group", 1.5, one) == one / "cpu" / "group" / "cgroup.procs"
    assert (one / "cpu" / "group" / "cpu.cfs_quota_us").read_text() == "150000"
    assert shares.ensure("group", 0.5, two) == two / "group" / "cgroup.procs"
    assert (two / "group" / "cpu.max").read_text() == "50000 100000"
    assert (two / "cgroup.subtree_control").read_text() == "+cpu"
    assert shares.ensure("group", 0.5, none) is None
    assert list(none.iterdir()) == []
