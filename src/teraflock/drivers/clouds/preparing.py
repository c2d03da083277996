"""What a rented machine that answers still needs before it is ready: its programs, its image, Jupyter, another run.

Every step may be repeated: `ready` is called again until nothing is left to do.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Protocol

from teraflock.drivers.clouds import guest, images
from teraflock.drivers.clouds.errors import Unusable, one_line
from teraflock.instance.driver import Handle, Machine, Ran

INSTALL_TIME_MAX: Final = timedelta(minutes=20)
"""PyTorch with its CUDA libraries is about 3 GB."""
SECONDS_MAX: Final = 20.0


class RunInside(Protocol):
    def __call__(
        self, handle: Handle, command: Sequence[str], *, stdin: bytes, seconds_max: float
    ) -> Ran: ...


class Preparing:
    def __init__(self, run: RunInside, *, sends_programs: bool) -> None:
        """`sends_programs`: machines run no script at their first boot, so they get it over SSH."""
        self._run = run
        self._sends_programs = sends_programs

    def doing(self, machine: Machine, token: str) -> str:
        """Do the next step. Returns what the machine is doing; empty: it is ready. `token` is that of its launch."""
        if self._sends_programs and guest.runs_programs(machine):
            self._sent(machine, guest.programs_script(machine))
        if images.installs(machine) and not self._is_installed(machine):
            return f"installing the image `{machine.recipe or images.JUPYTER}`"
        if machine.jupyter_token and self._sent(machine, "", *images.JUPYTER_ANSWERS).exit_code:
            return "starting Jupyter"
        if machine.command and machine.rental is not None and machine.rental.token != token:
            self._sent(machine, guest.run_again_script(machine.command_run))  # it was stopped meanwhile
        return ""

    def _is_installed(self, machine: Machine) -> bool:
        ran = self._sent(machine, "", *guest.state_command("image"))
        code, log = guest.read_state(ran.stdout)
        if code:
            lines = log.decode("utf-8", "replace").strip().splitlines() or ["no output"]
            raise Unusable(
                f"The image `{machine.recipe or images.JUPYTER}` cannot be installed: {one_line(lines[-1])}",
                hint="The machine was returned to the provider",
            )
        return code == 0

    def _sent(self, machine: Machine, script: str, *command: str) -> Ran:
        stdin = script.encode("utf-8", "surrogateescape")
        return self._run(machine.handle, command or ("sh",), stdin=stdin, seconds_max=SECONDS_MAX)
