"""Works inside rented machines over SSH: commands, files, and the programs of the first boot. For every cloud."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Final

from teraflock.base.clock import Clock
from teraflock.drivers.clouds import files, guest
from teraflock.drivers.clouds.channel import GuestChannel
from teraflock.drivers.clouds.reaching import Reaching
from teraflock.drivers.rented import Remote
from teraflock.instance.driver import Capability, CommandState, Endpoint, GuestFile, Handle, Ran
from teraflock.instance.engine_errors import EngineDown, EngineMissing
from teraflock.instance.model import SSH_PORT

CAPABILITIES: Final = frozenset({Capability.EXEC, Capability.FILES})
"""What every machine that is reached over SSH can do. Virtual machines and containers also run Jupyter."""
STATE_SECONDS_MAX: Final = 20.0
STATE_AGAIN: Final = timedelta(seconds=10)
"""How often the state of a program is read."""


class Inside:
    def __init__(
        self,
        site: str,
        clock: Clock,
        guests: Reaching,
        find: Callable[[Handle], Remote | None],
        *,
        as_root: bool = True,
    ) -> None:
        """`find` returns the machine of an instance, or None. Not `as_root`: commands run as the login user."""
        self._site = site
        self._clock = clock
        self._guests = guests
        self._find = find
        self._as_root = as_root
        self._files = files.GuestFiles(self._open_files)
        self._looked_at: dict[str, datetime] = {}

    def run(self, handle: Handle, command: Sequence[str], *, stdin: bytes, seconds_max: float) -> Ran:
        """Run a command, as root unless the site has no root."""
        found, at = self._place(handle)
        key = self._guests.host_key(found.token, at, handle.host_key)
        ran = self._guests.run(at, found.user, key, self._words(found, command), seconds_max, stdin)
        if ran is None:
            raise EngineDown("The rented machine does not answer over SSH", hint="Teraflock tries again")
        return ran

    def file(self, handle: Handle, path: str) -> AbstractContextManager[GuestFile]:
        return self._files.file(handle, path)

    def close(self) -> None:
        self._files.close()

    def program_state(self, handle: Handle, name: str) -> CommandState | None:
        """The state of the command or the user-data. None: it was read a moment ago."""
        now, key = self._clock.now(), f"{handle.instance_id} {name}"
        last = self._looked_at.get(key)
        if last is not None and timedelta(0) <= now - last < STATE_AGAIN:
            return None
        self._looked_at[key] = now
        ran = self.run(handle, guest.state_command(name), stdin=b"", seconds_max=STATE_SECONDS_MAX)
        exit_code, log = guest.read_state(ran.stdout)
        if exit_code is not None:
            del self._looked_at[key]
        return CommandState(exit_code=exit_code, log=log)

    def _open_files(self, handle: Handle) -> GuestChannel:
        found, at = self._place(handle)
        key = self._guests.host_key(found.token, at, handle.host_key)
        return self._guests.open(at, found.user, key, self._words(found, files.COMMAND))

    def _place(self, handle: Handle) -> tuple[Remote, Endpoint]:
        found = self._find(handle)
        at = found.endpoints.get(SSH_PORT) if found else None
        if found is None or at is None:
            raise EngineMissing(
                f"The site `{self._site}` does not have this machine, or it has no address yet"
            )
        return found, at

    def _words(self, remote: Remote, command: Sequence[str]) -> Sequence[str]:
        return command if remote.user == "root" or not self._as_root else ("sudo", "-n", "--", *command)
