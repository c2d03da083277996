"""Commands and files over a real SSH server, with the host key that a rented machine is given."""

import getpass
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.contract.cloud.ground import derive
from tests.fakes.sshd import ssh_server

from teraflock.base.clock import SystemClock
from teraflock.drivers.clouds import keys
from teraflock.drivers.clouds.inside import Inside
from teraflock.drivers.clouds.link import SshLink
from teraflock.drivers.clouds.reaching import Reaching
from teraflock.drivers.rented import Remote
from teraflock.instance.archive import archive
from teraflock.instance.driver import Handle, Seen
from teraflock.instance.engine_errors import EngineDown, EngineMissing
from teraflock.instance.model import InstanceId

TOKEN = "ins_one.1.0"
HANDLE = Handle(InstanceId("ins_one"), "", "m-1")
MARK = "mark"


class There:
    """One machine, reached as the engine of clouds reaches it."""

    def __init__(self, remote: Remote) -> None:
        self.remote: Remote | None = remote
        guests = Reaching(SshLink(), derive, MARK, injects_host_key=True)
        self.inside = Inside("acct", SystemClock(), guests, lambda handle: self.remote)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[There]:
    if getpass.getuser() != "root":
        pytest.skip("commands in rented machines run as root")
    login, host = keys.login_key(derive, MARK), keys.host_key(derive, TOKEN)
    with ssh_server(tmp_path, host, login) as at:
        machine = Remote(
            remote_id="m-1", instance_id="ins_one", token=TOKEN, seen=Seen.RUNNING, endpoints={22: at}
        )
        reached = There(machine)
        yield reached
        reached.inside.close()


def test_commands_and_files_reach_the_machine(there: There, tmp_path: Path) -> None:
    run = there.inside.run
    ran = run(
        HANDLE, ("sh", "-c", 'cat; echo "$1" >&2; exit 7', "sh", "two words"), stdin=b"in", seconds_max=20
    )
    assert (ran.exit_code, ran.stdout, ran.stderr, ran.timed_out) == (7, b"in", b"two words\n", False)
    assert run(HANDLE, ("sleep", "60"), stdin=b"", seconds_max=1).timed_out
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model").write_bytes(b"weights" * 100_000)
    tar = b"".join(archive(lambda path: there.inside.file(HANDLE, path), str(tmp_path / "out")))
    assert tar.count(b"weights") == 100_000


def test_another_host_key_is_never_talked_to(there: There, tmp_path: Path) -> None:
    assert there.remote is not None
    there.remote = replace(there.remote, token="ins_one.2.0")
    with pytest.raises(EngineDown):
        there.inside.run(HANDLE, ("touch", str(tmp_path / "reached")), stdin=b"secret", seconds_max=20)
    with pytest.raises(EngineDown), there.inside.file(HANDLE, str(tmp_path)):
        pass
    assert not (tmp_path / "reached").exists()
    there.remote = None
    with pytest.raises(EngineMissing):
        there.inside.run(HANDLE, ("true",), stdin=b"", seconds_max=20)
