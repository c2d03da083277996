"""Files of a hostile guest, read through the engine: the guest says whatever it likes about them."""

import threading
import time

import pytest
from tests.engine.inside import python

from teraflock.base.errors import TeraflockError
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.instance.driver import Machine, Seen
from teraflock.run.guest import CHECKPOINTS, RunGuest

GIB = 1 << 30
CREATE = """
import os, socket
os.makedirs("/root/checkpoints/good")
os.chdir("/root/checkpoints")
for name in (b"good/new\\nline", b"good/esc\\x1b[2J", b"good/bad\\xff", b"good/plain"):
    open(name, "wb").write(b"x" * 10)
os.symlink("/etc/shadow", "link")
os.symlink("/", "good/up")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
os.truncate(os.open("sparse", os.O_CREAT | os.O_RDWR), 1 << 40)
"""


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait 3 seconds for a file, not 30."""
    monkeypatch.setitem(LxdClient.open.__wrapped__.__kwdefaults__, "seconds_max", 3.0)  # type: ignore[attr-defined]


def pulled(guest: RunGuest, name: str) -> bytes:
    return b"".join(guest.archive(f"{CHECKPOINTS}/{name}", GIB))


def refused(guest: RunGuest, name: str) -> None:
    with pytest.raises(TeraflockError):
        pulled(guest, name)


def test_only_regular_files_of_a_checkpoint_are_read(driver: Lxd, red: Machine) -> None:
    python(driver, red, CREATE)
    guest = RunGuest(driver, red.handle)
    assert {each.name for each in guest.entries(CHECKPOINTS)} == {"good", "sparse"}
    found = pulled(guest, "good")
    assert b"good/plain" in found
    assert b"root:" not in found, "the link to / is not followed"
    for name in ("link", "socket", "sparse", "../../etc/shadow"):
        refused(guest, name)


@pytest.mark.usefixtures("hurried")
def test_guest_with_a_pipe_for_a_file_is_still_stopped_and_deleted(driver: Lxd, red: Machine) -> None:
    """A guest may list a file and then put a pipe in its place. LXD 5.0 waited for it before every stop."""
    python(driver, red, CREATE)
    guest = RunGuest(driver, red.handle)
    with pytest.raises(TeraflockError, match="cannot be read"):
        pulled(guest, "pipe")
    assert b"good/plain" in pulled(guest, "good"), "the next file is read"

    reading = threading.Thread(target=refused, args=(guest, "pipe"))
    reading.start()
    time.sleep(1)
    driver.stop(red.handle, force=True)
    reading.join()
    (seen,) = [each.seen for each in driver.sightings() if each.instance_id == red.id]
    assert seen == Seen.STOPPED
    with pytest.raises(TeraflockError, match="cannot be read"):
        pulled(guest, "pipe")
    driver.delete(red.handle)
    assert not [each for each in driver.sightings() if each.instance_id == red.id]
