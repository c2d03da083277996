"""A user on a machine with a real engine, in namespaces that have no way out."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.engine.conftest import IMAGES
from tests.engine.sandbox import NoSandbox, Sandbox
from tests.story.cloud import Cloud

from teraflock.drivers.lxd import build
from teraflock.drivers.lxd.daemon import LXD, Program
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.image import recipe


@contextmanager
def engine_sandbox(name: str, program: Program = LXD) -> Iterator[Sandbox]:
    """An engine of its own, and the base image. Skips the test where either is not possible."""
    try:
        build.build(recipe.read("base"), IMAGES, created_at=1)
        sandbox = Sandbox(f"{name}-", program)
    except (NoSandbox, build.BuildFailed) as reason:
        pytest.skip(str(reason))
    yield sandbox
    sandbox.close()


class RealCloud(Cloud):
    """A user on the machine with the containers."""

    def __init__(self, home: Path, sandbox: Sandbox) -> None:
        super().__init__(home)
        self._sandbox = sandbox
        program = sandbox.daemon.program()
        assert program is not None
        self.more = {program.folder_variable: str(sandbox.daemon.folder), "HOME": str(home.parent)}
        engine = home / "cloud" / "engine"
        engine.mkdir(parents=True)
        (engine / "images").symlink_to(IMAGES)  # building one takes a minute and needs a mirror

    def command(self, *words: str | Path) -> list[str]:  # type: ignore[override]  # within the sandbox, not anywhere
        enter = ["nsenter", f"--target={self._sandbox.inside_pid}", "--net", "--mount", "--pid", "--"]
        return [*enter, *Cloud.command(*words)]

    def dies(self, point: str, *words: str) -> None:
        """A server that kills itself at a given point, as by `kill -9`."""
        self.ok("down", "--keep-guests")
        environment = self.environment(80) | {"TERA_FAULTS": point}
        with subprocess.Popen(self.command("serve"), env=environment, stderr=subprocess.DEVNULL) as server:
            while self.run("whoami").code:
                assert server.poll() is None, "it ended before it was asked"
            asking = self.start(*words)
            assert server.wait() != 0
            asking.kill()  # it would retry, because it cannot know whether the request arrived
            asking.communicate()

    def told_of_other_hands(self) -> int:
        told = [each for each in self.ok("events", "--json").json if each["kind"] == "instance.drifted"]
        return len([each for each in told if "limits" in each["details"]["reason"]])

    @contextmanager
    def engine(self) -> Iterator[LxdClient]:
        """Call the engine directly, within Teraflock's project."""
        host = LxdClient(self._sandbox.daemon.socket_path)
        (project,) = [each["name"] for each in host.get("projects", recursion=1) if each["name"] != "default"]
        host.close()
        engine = LxdClient(self._sandbox.daemon.socket_path, project=project)
        yield engine
        engine.close()

    def guests(self) -> set[str]:
        """The host names of all containers of Teraflock, except those that build images."""
        with self.engine() as engine:
            found = engine.get("instances", recursion=1)
        ours = [each for each in found if not each["name"].startswith(("image-", "rough-"))]
        return {each["config"]["user.hostname"] for each in ours}
