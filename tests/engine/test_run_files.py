"""Files of a hostile guest, read through the engine: the guest says whatever it likes about them."""

import contextlib
import io
import tarfile
import threading
import time
from collections.abc import Container

import pytest
from tests.engine.inside import python, ran

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
LEFT = """
os.unlink("sparse")
os.mkfifo("good/pipe")
os.link("good/plain", "good/same")
"""


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait 3 seconds for a file, not 30."""
    monkeypatch.setitem(LxdClient.open.__wrapped__.__kwdefaults__, "seconds_max", 3.0)  # type: ignore[attr-defined]


def pulled(guest: RunGuest, name: str) -> bytes:
    return b"".join(guest.archive(f"{CHECKPOINTS}/{name}", GIB))


def archived(guest: RunGuest, left_out: Container[str]) -> bytes:
    return b"".join(guest.archive(CHECKPOINTS, GIB, left_out))


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


def test_outputs_come_without_pipes_sockets_and_links(driver: Lxd, red: Machine) -> None:
    """A socket or a pipe that a program left must not keep its outputs from being copied."""
    python(driver, red, CREATE + LEFT)
    guest = RunGuest(driver, red.handle)
    special = guest.special(CHECKPOINTS)
    assert special == {f"{CHECKPOINTS}/{name}" for name in ("pipe", "socket", "good/pipe")}
    with tarfile.open(fileobj=io.BytesIO(archived(guest, special))) as tar:
        found = {each.name: each for each in tar}
    assert all(each.isfile() or each.isdir() for each in found.values()), "hard links are files"
    names = {name.removeprefix("checkpoints/") for name in found}
    assert {"good/plain", "good/same", "good/new\nline", "good/esc\x1b[2J"} <= names
    assert not names & {"link", "pipe", "socket", "good/up", "good/pipe"}


def test_folder_replaced_by_a_link_shows_only_the_guest(driver: Lxd, red: Machine) -> None:
    """The engine reads files for us. It must not follow links of a guest to its own files or processes."""
    guest = RunGuest(driver, red.handle)
    for target in ("/proc/self", "/proc/self/fd", "/proc/thread-self", "/dev/fd", "/proc/1", "/"):
        python(driver, red, REPLACE, target)
        for name in ("environ", "cmdline", "cwd/etc/hostname", "root/etc/hostname", "3", "etc/hostname"):
            with contextlib.suppress(TeraflockError):
                content = pulled(guest, name)
                assert b"LXD_DIR" not in content
                assert b"forkfile" not in content
                if name == "etc/hostname":
                    assert ran(driver, red, "cat", "/etc/hostname").encode() in content


REPLACE = """
import os, shutil, sys
shutil.rmtree("/root/checkpoints") if not os.path.islink("/root/checkpoints") else os.unlink("/root/checkpoints")
os.symlink(sys.argv[1], "/root/checkpoints")
"""


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
