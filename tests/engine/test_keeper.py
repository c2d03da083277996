"""A killed engine is restarted automatically, and the network links it left are removed."""

import os
import signal
from datetime import UTC, datetime
from pathlib import Path

from tests.engine.conftest import MachineMaker
from tests.engine.sandbox import Sandbox

from teraflock.app.installation.keeper import LEFT_OVER, EngineKeeper
from teraflock.app.installation.places import Places
from teraflock.base.clock import FixedClock
from teraflock.drivers.lxd import daemon, veths
from teraflock.drivers.lxd.driver import Lxd
from teraflock.instance.driver import Seen
from teraflock.storage.events import newest_of_project
from teraflock.storage.open import open_database


def test_killed_engine_is_restarted_and_its_guests_keep_running(
    driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker, tmp_path: Path
) -> None:
    machine = a_machine()
    driver.prepare(machine)
    driver.create(machine)
    driver.start(machine.handle)
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    database = open_database(str(tmp_path / "db"), clock)
    keeper = EngineKeeper(Places(tmp_path), database, clock, os.urandom, sandbox.daemon)
    keeper.turn()
    pid = sandbox.daemon.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    sandbox.inside_command(
        "ip", "link", "add", "vethdeadbeef", "type", "veth", "peer", "name", "vethdeadbeee"
    )
    for _ in range(200):  # the process takes a moment to end
        if sandbox.daemon.pid() is None:
            break
    keeper.turn()
    assert daemon.answers(sandbox.daemon.socket_path)
    assert sandbox.daemon.pid() not in (None, pid)
    assert [each.seen for each in driver.sightings()] == [Seen.RUNNING]
    with database.read() as tx:
        assert [event.kind for event in newest_of_project(tx, "", None, limit=9)] == ["engine.restarted"]
    with sandbox.inside():
        assert "vethdeadbeee" in veths.leftovers().values()
        keeper.turn()
        clock.move(LEFT_OVER)
        keeper.turn()
        assert veths.leftovers() == {}
    driver.stop(machine.handle, force=True)
    driver.delete(machine.handle)
