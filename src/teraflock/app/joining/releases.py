"""Versions of Teraflock that the server installed on this host, next to the one that was installed by hand.

    releases/VERSION-DIGEST/teraflock/…    unpacked packages
    releases/current.json                  the one to run

A package is unpacked and tried before `current.json` names it, in one step. The host program then starts itself again
with that folder first in its path. If somebody installs another version by hand, that one counts again.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from teraflock import __version__
from teraflock.app.files import put
from teraflock.app.joining.config import HostPlaces
from teraflock.base.errors import BadInput, Refused
from teraflock.drivers.joined.frames import Upgrade
from teraflock.instance.engine_errors import EngineBusy

PACKAGE: Final = "teraflock"
INSTALLED: Final = "TERA_HOST_INSTALLED"
"""Set while a release runs: the version that was installed by hand."""
TRY_SECONDS_MAX: Final = 60
REASON_CHARACTERS_MAX: Final = 300
_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,39}")
TRIAL: Final = "import teraflock, teraflock.app.joining.serve as s; s.check(); print(teraflock.__version__)"


class Current(msgspec.Struct, frozen=True, kw_only=True):
    release: str
    """The name of its folder."""
    over: str
    """The version that was installed by hand at that time."""


class Releases:
    def __init__(self, places: HostPlaces, environment: Mapping[str, str] = os.environ) -> None:
        self._home = places.home
        self.folder = places.folder / "releases"
        self._current = self.folder / "current.json"
        self._environment = environment
        self._lock = threading.Lock()

    def install(self, request: Upgrade, content: bytes) -> None:
        """Unpack a package, try it, and make it the one to run. Safe to repeat."""
        if not self._lock.acquire(blocking=False):
            raise EngineBusy("The host is already being upgraded")
        try:
            name = _name(request, content)
            self._unpack(name, content)
            self._try(name, request.version)
            put(self._current, msgspec.json.encode(Current(release=name, over=self._installed())), mode=0o600)
            self._keep_only(name)
        finally:
            self._lock.release()

    def newer(self) -> Path | None:
        """The folder of the release to run instead of this program. None: this one is right."""
        try:
            found = msgspec.json.decode(self._current.read_bytes(), type=Current)
        except (OSError, msgspec.DecodeError):
            return None
        folder = self.folder / found.release
        is_this = Path(__file__).is_relative_to(folder)
        return folder if folder.is_dir() and found.over == self._installed() and not is_this else None

    def environment(self, folder: Path) -> dict[str, str]:
        """The environment in which a release runs."""
        path = self._environment.get("PYTHONPATH", "").split(os.pathsep)
        others = [each for each in path if each and not Path(each).is_relative_to(self.folder)]
        return {
            **self._environment,
            "PYTHONPATH": os.pathsep.join((str(folder), *others)),
            INSTALLED: self._installed(),
            "TERA_HOME": str(self._home),
        }

    def run(self, folder: Path) -> NoReturn:
        """Become the host program of a release. The process id stays the same."""
        command = [sys.executable, "-m", PACKAGE, "host", "serve"]
        os.execve(sys.executable, command, self.environment(folder))  # noqa: S606 -- no shell is needed

    def _installed(self) -> str:
        return self._environment.get(INSTALLED) or __version__

    def _unpack(self, name: str, content: bytes) -> None:
        if (self.folder / name).is_dir():
            return
        new = self.folder / f"{name}.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True, mode=0o700)
        try:
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                archive.extractall(new, filter="data")
        except (tarfile.TarError, OSError, EOFError) as error:
            shutil.rmtree(new, ignore_errors=True)
            raise Refused(f"The host cannot unpack the package: {error}") from None
        new.rename(self.folder / name)

    def _try(self, name: str, version: str) -> None:
        """Load the program of the release with this host's Python and its packages."""
        command = [sys.executable, "-c", TRIAL]
        try:
            done = subprocess.run(
                command,
                env=self.environment(self.folder / name),
                capture_output=True,
                text=True,
                check=False,
                timeout=TRY_SECONDS_MAX,
            )
            problem = "" if done.stdout.split() == [version] else (done.stderr.strip() or done.stdout)
        except subprocess.TimeoutExpired:
            problem = "it does not end"
        if problem:
            shutil.rmtree(self.folder / name, ignore_errors=True)
            last = problem.splitlines()[-1][-REASON_CHARACTERS_MAX:]
            raise Refused(
                f"Version {version} does not run on this host: {last}",
                hint="Install what it needs on the host, such as a newer Python package, then upgrade again",
            )

    def _keep_only(self, name: str) -> None:
        """Remove other releases. The one that runs now is loaded already."""
        for each in self.folder.iterdir():
            if each.is_dir() and each.name != name and not Path(__file__).is_relative_to(each):
                shutil.rmtree(each, ignore_errors=True)


def _name(request: Upgrade, content: bytes) -> str:
    digest = sha256(content).hexdigest()
    if not _VERSION.fullmatch(request.version) or digest != request.digest:
        raise BadInput("The package did not arrive complete", hint="Run `tera host upgrade` again")
    return f"{request.version}-{digest[:16]}"
