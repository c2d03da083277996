"""Runs Slurm's client commands, and turns their errors into ours."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from teraflock.base.errors import TeraflockError
from teraflock.drivers.clouds.channel import finished
from teraflock.drivers.clouds.errors import CannotDo, one_line
from teraflock.instance.engine_errors import BadCredentials, EngineDown, EngineRefused, NoRoom, OverQuota

SECONDS_MAX: Final = 30.0
BYTES_MAX: Final = 16 << 20
"""The list of all jobs of a large cluster is a few MB."""
GONE: Final = ("Invalid job id", "already completing or completed")
MEANINGS: Final[Sequence[tuple[type[TeraflockError], str, tuple[str, ...]]]] = (
    (
        BadCredentials,
        "Check that `munge` runs on the server and has the key of the cluster",
        ("Access/permission denied", "Invalid authentication", "authentication", "munge"),
    ),
    (
        EngineDown,
        "Teraflock tries again",
        ("Unable to contact", "Connection refused", "timed out", "Socket", "temporarily"),
    ),
    (
        OverQuota,
        "Ask the administrators of the cluster for a higher limit, or use another partition",
        ("QOSMax", "QOSGrp", "AssocMax", "AssocGrp", "violates accounting/QOS policy", "limit"),
    ),
    (NoRoom, "The next place is tried", ("configuration is not available", "Required node not available")),
    (CannotDo, "Correct the options of the site", ("nvalid partition", "nvalid generic resource")),
)  # fmt: skip


class Slurm(Protocol):
    def call(self, program: str, *words: str, stdin: str = "") -> str:
        """The output of a command. Raises one of `engine_errors`."""
        ...


class SlurmCommands:
    def __init__(self, conf: str = "") -> None:
        """`conf` is the path of `slurm.conf`. Empty: as the commands find it themselves.

        Jobs inherit the environment of `sbatch`, so it has nothing else of the server's.
        """
        path = os.environ.get("PATH", "/usr/bin:/bin")
        self._environment: Mapping[str, str] = {"PATH": path, **({"SLURM_CONF": conf} if conf else {})}

    def call(self, program: str, *words: str, stdin: str = "") -> str:
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                [program, *words], stdin=pipe, stdout=pipe, stderr=pipe, env=self._environment
            )
        except FileNotFoundError:
            raise EngineDown(
                f"`{program}` is not installed on the server",
                hint="Install the Slurm client: `apt-get install slurm-client`",
            ) from None
        given = stdin.encode("utf-8", "surrogateescape")
        output = finished(process, given, seconds_max=SECONDS_MAX, bytes_max=BYTES_MAX)
        if output.timed_out:
            raise EngineDown(f"Slurm did not answer `{program}` in time", hint="Teraflock tries again")
        said = output.stderr.decode("utf-8", "replace")
        if process.returncode:
            raise error_of(program, said)
        return output.stdout.decode("utf-8", "replace")


def error_of(program: str, said: str) -> TeraflockError:
    """The error of ours that a command's words mean."""
    words = one_line(said.removeprefix(f"{program}: ").removeprefix("error: ")) or "no reason given"
    for kind, hint, parts in MEANINGS:
        if any(part in said for part in parts):
            return kind(f"Slurm says: {words}", hint=hint)
    return EngineRefused(f"Slurm refuses: {words}", hint="The cluster does not accept this request")
