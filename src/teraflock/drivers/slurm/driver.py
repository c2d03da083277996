"""The driver of a Slurm cluster. An instance is a batch job that runs an SSH server, found by the name of the job.

Invariants, besides those of `RentedDriver`:
- a name contains the launch token, and jobs depend on `singleton`: even two jobs of one launch never run at once;
- a job that ended is not listed. Cancelling a job that has ended succeeds;
- the SSH server shows a host key derived from the token, so nothing else at that address is talked to;
- all jobs belong to one user of the cluster, so tenants must trust one another: a site is open to nobody by default.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import TeraflockError
from teraflock.drivers.clouds import probe
from teraflock.drivers.clouds.errors import Unusable
from teraflock.drivers.clouds.guest import LOG_BYTES_MAX, read_state
from teraflock.drivers.clouds.inside import CAPABILITIES, Inside
from teraflock.drivers.clouds.keys import Derive
from teraflock.drivers.clouds.link import Link
from teraflock.drivers.clouds.prices import gpu_memory_of
from teraflock.drivers.clouds.reaching import Reaching
from teraflock.drivers.rented import Remote, RentedDriver
from teraflock.drivers.slurm import jobs
from teraflock.drivers.slurm.commands import GONE, Slurm
from teraflock.instance.driver import (
    CommandState,
    Endpoint,
    GuestFile,
    Handle,
    Machine,
    MachineType,
    Ran,
    Readiness,
)
from teraflock.instance.engine_errors import EngineDown, EngineMissing, EngineRefused
from teraflock.instance.model import SSH_PORT

PROBE_SECONDS_MAX: Final = 20.0


class SlurmDriver(RentedDriver):
    capabilities = CAPABILITIES

    def __init__(
        self,
        site: str,
        mark: str,
        clock: Clock,
        *,
        slurm: Slurm,
        link: Link,
        derive: Derive,
        user: str,
        types: str,
        wait: timedelta,
        time_limit: str = "",
        addresses: Mapping[str, str] | None = None,
    ) -> None:
        """`wait` is how long a job may wait in the queue, `addresses` are those of nodes whose names do not resolve."""
        super().__init__(site, mark, clock)
        self._slurm = slurm
        self._types = jobs.read_types(types)
        self._gres = jobs.gres_of(types)
        self._user = user
        self._wait = wait
        self._time_limit = time_limit
        self._addresses = addresses or {}
        self._guests = Reaching(link, derive, mark, injects_host_key=True)
        self._inside = Inside(site, clock, self._guests, self._seen, as_root=False)

    def boot_time_max(self, machine: Machine) -> timedelta:
        return self._wait

    def types(self) -> Sequence[MachineType]:
        return self._types

    # Jobs

    def _machines(self) -> Iterable[Remote]:
        try:
            output = self._slurm.call(
                "squeue", "--all", "--noheader", "--states=all", f"--format={jobs.FORMAT}"
            )
            return [self._remote(each) for each in jobs.read_jobs(self._mark, output)]
        except EngineRefused as error:  # a listing that is refused says nothing about jobs
            raise EngineDown(error.sentence, hint=error.hint) from None
        except ValueError as error:
            raise EngineDown(f"Slurm cannot be understood: {error}") from None

    def _remote(self, job: jobs.SlurmJob) -> Remote:
        at = Endpoint(self._addresses.get(job.node, job.node), jobs.port_of(job.token))
        price = next((each.prices["on-demand"] for each in self._types if each.name == job.type), None)
        return Remote(
            remote_id=job.id,
            instance_id=job.token.partition(".")[0],
            token=job.token,
            seen=job.seen,
            doing=job.doing,
            zone=job.partition,
            price_micros_per_hour=price if job.node else 0,
            currency="USD",
            endpoints={SSH_PORT: at} if job.node else {},
            user=self._user,
        )

    def _rent(self, machine: Machine) -> Remote:
        rental = machine.rental
        assert rental is not None, "`create` checks this"
        words = jobs.submit_words(
            self._mark,
            machine,
            rental.region,
            gres=self._gres.get(rental.type, "gpu"),
            time_limit=self._time_limit,
        )
        host = self._guests.new_host_key(rental.token)
        script = jobs.script(machine, host, self._guests.login().public)
        id = self._slurm.call("sbatch", *words, stdin=script).strip().partition(";")[0]
        if not id.isdecimal():
            raise EngineDown("Slurm did not answer with the number of the job", hint="Teraflock tries again")
        job = jobs.SlurmJob(
            id=id,
            seen=jobs.SEEN["PENDING"],
            token=rental.token,
            node="",
            partition=rental.region,
            type=rental.type,
            doing="",
        )
        return self._remote(job)

    def _give_back(self, remote: Remote) -> None:
        try:
            self._slurm.call("scancel", remote.remote_id)
        except TeraflockError as error:
            if not any(words in error.sentence for words in GONE):
                raise

    # Inside a job

    def ready(self, machine: Machine) -> Readiness:
        try:
            listed = super().ready(machine)
        except EngineMissing:
            raise Unusable(
                "The job ended before it was ready", hint="Its node may lack `sshd`, or its port was in use"
            ) from None
        if not listed.ready:
            return listed
        found = self._seen(machine.handle)
        at, key = listed.endpoints[SSH_PORT], self._guests.new_host_key(found.token if found else "").public
        command = probe.COMMAND if machine.gpus else probe.NO_GPUS
        ran = self._guests.run(at, listed.user, key, command, PROBE_SECONDS_MAX)
        if ran is None or ran.timed_out:
            return Readiness(ready=False, doing="waiting for SSH in the job")
        memory = gpu_memory_of(self._types, machine.rental)
        if wrong := probe.problem(probe.read(ran.stdout), len(machine.gpus), memory):
            raise Unusable(f"The job is not usable: {wrong}", hint="It was cancelled")
        return replace(listed, host_key=key)

    def run(self, handle: Handle, command: Sequence[str], *, stdin: bytes, seconds_max: float) -> Ran:
        return self._inside.run(handle, command, stdin=stdin, seconds_max=seconds_max)

    def file(self, handle: Handle, path: str) -> AbstractContextManager[GuestFile]:
        return self._inside.file(handle, path)

    def command_state(self, handle: Handle) -> CommandState | None:
        return self._program_state(handle, "command")

    def user_data_state(self, handle: Handle) -> CommandState | None:
        return self._program_state(handle, "user-data")

    def _program_state(self, handle: Handle, name: str) -> CommandState | None:
        found = self._seen(handle)
        if found is None:
            raise EngineMissing(f"The site `{self.site}` does not have this job")
        command = jobs.state_command(found.token, name, LOG_BYTES_MAX)
        ran = self.run(handle, command, stdin=b"", seconds_max=PROBE_SECONDS_MAX)
        exit_code, log = read_state(ran.stdout)
        return CommandState(exit_code=exit_code, log=log)
