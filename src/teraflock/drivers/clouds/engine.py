"""The driver of an account at a public cloud. The module of the cloud says what to ask, this one asks it.

Invariants, besides those of `RentedDriver`:
- only `calling.py` makes requests: paced for the whole account, signed, with the credentials removed from errors;
- a launch is sent once. If its answer is lost, the next attempt looks for the machine first;
- `delete` succeeds when two listings in a row lack the machine. Until then it raises `StillEnding`;
- a machine is ready when its SSH server shows the host key that we gave it, CUDA sees the promised GPUs, and its
  image is installed;
- credentials that are not accepted say nothing about machines.
"""

import logging
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import TeraflockError
from teraflock.drivers.clouds import guest, probe, types_file
from teraflock.drivers.clouds.calling import Caller
from teraflock.drivers.clouds.errors import NoMachineFree, Unusable, one_line
from teraflock.drivers.clouds.http import CloudTransport
from teraflock.drivers.clouds.images import installs
from teraflock.drivers.clouds.inside import CAPABILITIES as INSIDE
from teraflock.drivers.clouds.inside import Inside
from teraflock.drivers.clouds.keys import Derive
from teraflock.drivers.clouds.leaving import Leaving
from teraflock.drivers.clouds.link import Link
from teraflock.drivers.clouds.marks import Boot
from teraflock.drivers.clouds.model import CloudApi
from teraflock.drivers.clouds.pacing import Pacer
from teraflock.drivers.clouds.preparing import INSTALL_TIME_MAX, Preparing
from teraflock.drivers.clouds.prices import gpu_memory_of, price_of, priced
from teraflock.drivers.clouds.reaching import Reaching
from teraflock.drivers.clouds.signing import Signer
from teraflock.drivers.clouds.sound import sound_types
from teraflock.drivers.clouds.types_file import TypesRead
from teraflock.drivers.rented import Remote, RentedDriver, sighting_of
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import (
    Capability,
    CommandState,
    GuestFile,
    Handle,
    Machine,
    MachineType,
    Ran,
    Readiness,
    Seen,
    Sighting,
)
from teraflock.instance.ending import StillEnding
from teraflock.instance.engine_errors import EngineDown, EngineMissing, EngineRefused
from teraflock.instance.model import SSH_PORT

LOG: Final = logging.getLogger("teraflock.clouds")
LISTING_AGE_MAX: Final = timedelta(seconds=5)
"""`ready` and `look` use a listing of this age, so that many machines that boot cost few calls."""
ADDRESS_AGE_MAX: Final = timedelta(seconds=60)
"""Commands and files use the address in a listing of this age, so that they cost the provider nothing."""
CONFIRMS: Final = 2
PROBE_SECONDS_MAX: Final = 20.0
"""A guest cannot hold a thread of the server for longer."""


class CloudSite(RentedDriver):
    def __init__(
        self,
        site: str,
        mark: str,
        clock: Clock,
        *,
        cloud: CloudApi,
        transport: CloudTransport,
        signer: Signer,
        pacer: Pacer,
        link: Link,
        derive: Derive,
        folder: Path,
    ) -> None:
        super().__init__(site, mark, clock)
        self.cloud = cloud
        self.capabilities = cloud.capabilities | INSIDE | {Capability.JUPYTER}
        if cloud.notice:
            self.capabilities |= {Capability.NOTICE}
        self._ask = Caller(cloud, transport, signer, pacer, clock).ask
        self._guests = Reaching(link, derive, mark, injects_host_key=cloud.injects_host_key)
        self._inside = Inside(site, clock, self._guests, lambda handle: self._seen(handle, ADDRESS_AGE_MAX))
        self._preparing = Preparing(self._inside.run, sends_programs=not cloud.runs_first_boot)
        self._leaving = Leaving(cloud.notice, self._guests.run_on)
        self._types_file = folder / f"types-{site}.json"
        known = types_file.read(self._types_file)
        self._types, self.types_at = known.types, known.at
        self._types_asked_at: datetime | None = None
        self._listing: tuple[datetime, tuple[Remote, ...]] | None = None
        self._absent: dict[tuple[str, str], int] = {}
        """How many listings in a row lacked a machine that is being deleted."""
        self._ended_at: dict[tuple[str, str], datetime] = {}
        """When a machine that is being deleted was given back."""

    # What accounts ask

    def check(self) -> str:
        return one_line(self._ask(self.cloud.check()))

    def leftovers(self) -> Sequence[Leftover]:
        """What no machine uses: things of a launch without a machine, and shared things if there is no machine."""
        tokens = {each.token for each in self._machines()}
        found = self._ask(self.cloud.leftovers(self._mark))
        loose = [each for each in found if (each.token not in tokens if each.token else not tokens)]
        return [replace(each, name=one_line(each.name)) for each in loose]

    def remove_leftover(self, leftover: Leftover) -> None:
        self._ask(self.cloud.remove_leftover(leftover))

    # What can be rented

    def types(self) -> Sequence[MachineType]:
        return self._types

    def refresh_types(self) -> Sequence[MachineType]:
        """Read machine types and prices again, and keep them for the next start."""
        found = sound_types(self._ask(self.cloud.types()))
        self._types, self.types_at = found, self._clock.now()
        self._types_asked_at = self.types_at
        types_file.write(self._types_file, TypesRead(found, self.types_at))
        return found

    def _keep_types_fresh(self) -> None:
        now = self._clock.now()
        asked_at = self._types_asked_at
        if asked_at is not None and timedelta(0) <= now - asked_at < self.cloud.types_age_max:
            return
        self._types_asked_at = now  # also after a failure: the listing matters more
        try:
            self.refresh_types()
        except TeraflockError as error:
            LOG.warning("%s: machine types cannot be read: %s", self.site, error.sentence)

    # Machines

    def boot_time_max(self, machine: Machine) -> timedelta:
        return self.cloud.boot_time_max + (INSTALL_TIME_MAX if installs(machine) else timedelta())

    def sightings(self) -> Iterable[Sighting]:
        machines = self._leaving.noted(self._machines(), self._clock.now())
        self._keep_types_fresh()
        return [sighting_of(each) for each in machines]

    def look(self, handle: Handle) -> Sighting | None:
        """With the end that its machine announced when `sightings` last asked it."""
        found = self._seen(handle)
        return None if found is None else sighting_of(self._leaving.with_end(found))

    def _machines(self) -> tuple[Remote, ...]:
        try:
            found = tuple(priced(self._types, each) for each in self._ask(self.cloud.machines(self._mark)))
        except EngineRefused as error:  # a listing that is refused says nothing about machines
            raise EngineDown(error.sentence, hint=error.hint) from None
        self._listing = (self._clock.now(), found)
        return found

    def _seen(self, handle: Handle, age_max: timedelta = LISTING_AGE_MAX) -> Remote | None:
        listing = self._listing
        if listing is None or not timedelta(0) <= self._clock.now() - listing[0] <= age_max:
            return super()._seen(handle)
        mine = (each for each in listing[1] if each.instance_id == handle.instance_id)
        return next((each for each in mine if handle.remote_id in ("", each.remote_id)), None)

    def _rent(self, machine: Machine) -> Remote:
        rental = machine.rental
        assert rental is not None, "`create` checks this"
        limit = rental.price_limit_micros_per_hour
        self._check_price(rental.type, price_of(self._types, rental), limit)
        launched_at: list[datetime] = []
        made = self._ask(self.cloud.rent(self._boot(machine)), launched_at)
        self._listing = None
        price = (
            price_of(self._types, rental)
            if made.price_micros_per_hour is None
            else made.price_micros_per_hour
        )
        if limit is not None and price is not None and price > limit:
            self._give_back(made)
            self._check_price(rental.type, price, limit)
        since = made.since or (launched_at[-1] if launched_at else None)
        return replace(made, since=since, price_micros_per_hour=price)

    def _check_price(self, type: str, price: int | None, limit: int | None) -> None:
        if limit is not None and price is not None and price > limit:
            raise NoMachineFree(f"`{type}` now costs more than the limit at {self.cloud.title}")

    def _boot(self, machine: Machine) -> Boot:
        token = machine.rental.token if machine.rental else ""
        host, login = self._guests.new_host_key(token), self._guests.login().public
        return Boot(
            mark=self._mark,
            machine=machine,
            login_key=login,
            cloud_config=guest.cloud_config(machine, host, login),
            script=guest.script(machine, host, login),
            ends_at=self.cloud.ends_at(self._clock.now()),
        )

    def _give_back(self, remote: Remote) -> None:
        self._ask(self.cloud.give_back(remote.remote_id))
        self._listing = None

    def delete(self, handle: Handle) -> None:
        """End the machine, and succeed when two listings in a row lack it."""
        key = (handle.instance_id, handle.remote_id)
        found = self._of(handle)
        for each in found:
            self._ended_at[key] = self._clock.now()  # also if the answer is lost
            self._give_back(each)
        if not found and handle.remote_id and key not in self._absent:
            self._ask(self.cloud.give_back(handle.remote_id))  # it may be too new to be listed
        self._absent[key] = 0 if found else self._absent.get(key, 0) + 1
        if self._absent[key] < CONFIRMS:
            said = f"{self.cloud.title} has accepted the delete, and a listing must confirm it"
            raise StillEnding(said, over_at=self._ended_at.get(key))
        del self._absent[key]
        self._ended_at.pop(key, None)

    def stop(self, handle: Handle, *, force: bool) -> None:
        if Capability.STOP not in self.capabilities:
            self._lacks(Capability.STOP)
        for each in self._of(handle):
            if each.seen != Seen.STOPPED:
                self._ask(self.cloud.stop(each.remote_id))
                self._listing = None

    def start(self, handle: Handle) -> None:
        """Start a stopped machine. A new one starts by itself."""
        if Capability.STOP not in self.capabilities:
            return
        for each in self._of(handle):
            if each.seen == Seen.STOPPED:
                self._ask(self.cloud.start(each.remote_id))
                self._listing = None

    def resize(self, machine: Machine) -> None:
        """Do nothing: a machine has the size of its type, and the service refuses another one."""
        return

    # Inside a machine

    def ready(self, machine: Machine) -> Readiness:
        try:
            listed = super().ready(machine)
        except EngineMissing:  # a launch that was accepted can still fail, or be taken back at once
            raise Unusable(f"{self.cloud.title} ended the machine before it was ready") from None
        if not listed.ready:
            self._complete(machine)
            return listed
        at = listed.endpoints[SSH_PORT]
        found = self._seen(machine.handle)  # its own token: that of the machine counts the starts
        expected = self._guests.host_key(found.token, at, machine.handle.host_key) if found else ""
        command = probe.COMMAND if machine.gpus else probe.NO_GPUS
        ran = self._guests.run(at, listed.user, expected, command, PROBE_SECONDS_MAX) if expected else None
        if ran is None or ran.timed_out:
            return Readiness(ready=False, doing="waiting for SSH with the machine's own host key")
        wrong = probe.problem(
            probe.read(ran.stdout), len(machine.gpus), gpu_memory_of(self._types, machine.rental)
        )
        if wrong:
            raise Unusable(f"The rented machine is not usable: {wrong}", hint="It was given back")
        reached = replace(machine, handle=replace(machine.handle, host_key=expected))
        if doing := self._preparing.doing(reached, found.token if found else ""):
            return Readiness(ready=False, doing=doing)
        return replace(listed, host_key=expected)

    def _complete(self, machine: Machine) -> None:
        found = self._seen(machine.handle)
        if found is not None and found.seen == Seen.RUNNING:
            self._ask(self.cloud.complete(self._mark, found))

    def _broken(self, remote: Remote) -> TeraflockError:
        return Unusable(f"The rented machine did not start: {remote.doing}", hint="It was given back")

    def run(self, handle: Handle, command: Sequence[str], *, stdin: bytes, seconds_max: float) -> Ran:
        return self._inside.run(handle, command, stdin=stdin, seconds_max=seconds_max)

    def file(self, handle: Handle, path: str) -> AbstractContextManager[GuestFile]:
        return self._inside.file(handle, path)

    def command_state(self, handle: Handle) -> CommandState | None:
        return self._inside.program_state(handle, "command")

    def user_data_state(self, handle: Handle) -> CommandState | None:
        return self._inside.program_state(handle, "user-data")
