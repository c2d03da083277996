"""Opens a Slurm cluster as a site."""

import getpass
import re
from datetime import timedelta
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.drivers.clouds.link import SshLink
from teraflock.drivers.opening import DriverKind, Opening
from teraflock.drivers.slurm.commands import SlurmCommands
from teraflock.drivers.slurm.driver import SlurmDriver
from teraflock.drivers.slurm.jobs import TYPES_HINT

WAIT_HOURS: Final = 24
TIME: Final = re.compile(r"(\d+-)?\d{1,4}(:\d{2}){0,2}")


def _open(opening: Opening) -> SlurmDriver:
    if opening.derive is None:
        raise BadInput(f"The site `{opening.name}` needs the installation's key")
    pairs = (each.partition("=") for each in opening.options.get("addresses", "").split(",") if each)
    return SlurmDriver(
        opening.name,
        opening.mark,
        opening.clock,
        slurm=SlurmCommands(opening.options.get("conf", "")),
        link=SshLink(),
        derive=opening.derive,
        user=getpass.getuser(),
        types=opening.options.get("types", ""),
        wait=timedelta(hours=opening.option("wait_hours", WAIT_HOURS, _hours)),
        time_limit=opening.option("time", "", _time),
        addresses={node.strip(): address.strip() for node, _, address in pairs},
    )


def _hours(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 8760:
        raise ValueError(text)
    return int(text)


def _time(text: str) -> str:
    if not TIME.fullmatch(text):
        raise ValueError(text)
    return text


DRIVER: Final = DriverKind(
    summary="Jobs of a Slurm cluster, each with its own SSH server",
    options={
        "types": "What can be launched: `NAME=PARTITION/KEY:VALUE,…; …`. Keys: cpus, ram_gb, gpu (model), gpus, gres"
        f" (`gpu` or the cluster's `gpu:NAME`), price (USD per hour). {TYPES_HINT}",
        "conf": "The path of `slurm.conf`. Default: as Slurm's commands find it",
        "time": "The time limit of each job, as for `sbatch --time`. Default: that of the partition",
        "wait_hours": f"How many hours a job may wait in Slurm's queue. Default: {WAIT_HOURS}",
        "addresses": "Addresses of nodes whose names do not resolve: `NODE=ADDRESS,…`",
    },
    open=_open,
)
