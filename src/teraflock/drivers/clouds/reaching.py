"""Reaches rented machines over SSH, each with the host key that belongs to it."""

from collections.abc import Sequence
from typing import Final

from teraflock.drivers.clouds import keys
from teraflock.drivers.clouds.channel import GuestChannel
from teraflock.drivers.clouds.keys import Derive, KeyPair
from teraflock.drivers.clouds.link import Link
from teraflock.drivers.rented import Remote
from teraflock.instance.driver import Endpoint, Ran
from teraflock.instance.model import SSH_PORT

NOTICE_SECONDS_MAX: Final = 8.0


class Reaching:
    def __init__(self, link: Link, derive: Derive, mark: str, *, injects_host_key: bool) -> None:
        self._link = link
        self._derive = derive
        self._mark = mark
        self._injects = injects_host_key

    def login(self) -> KeyPair:
        return keys.login_key(self._derive, self._mark)

    def new_host_key(self, token: str) -> KeyPair:
        return keys.host_key(self._derive, token)

    def host_key(self, token: str, at: Endpoint, known: str = "") -> str:
        """The key that a machine must show: the one that it was given, else the first that it showed (`known`).

        Empty: it shows none yet.
        """
        return self.new_host_key(token).public if self._injects else known or self._link.host_key(at)

    def run(
        self,
        at: Endpoint,
        user: str,
        host_key: str,
        command: Sequence[str],
        seconds_max: float,
        stdin: bytes = b"",
    ) -> Ran | None:
        """Run a command as the login user. None: the machine does not answer with this host key."""
        login = self.login()
        return self._link.run(at, user, host_key, login, command, stdin=stdin, seconds_max=seconds_max)

    def open(self, at: Endpoint, user: str, host_key: str, command: Sequence[str]) -> GuestChannel:
        """Start a command as the login user and talk to it."""
        return self._link.open(at, user, host_key, self.login(), command)

    def run_on(self, remote: Remote, command: Sequence[str]) -> Ran | None:
        at = remote.endpoints.get(SSH_PORT)
        if at is None:
            return None
        return self.run(at, remote.user, self.host_key(remote.token, at), command, NOTICE_SECONDS_MAX)
