"""What a job of a Slurm cluster is: its options, its script, and how Slurm's answers are read. Pure."""

import base64
import re
import zlib
from collections.abc import Mapping, Sequence
from shlex import join, quote
from typing import Final

import msgspec

from teraflock.base.errors import BadInput, UnknownName
from teraflock.base.money import parse_micros
from teraflock.base.quantities import GIB, MIB
from teraflock.catalog.names import find_cards
from teraflock.drivers.clouds.keys import KeyPair
from teraflock.drivers.clouds.marks import machine_name, read_name
from teraflock.instance.driver import Machine, MachineType, Seen

TYPES_HINT: Final = (
    "For example `small=cpu/cpus:2,ram_gb:8; one-a100=gpu/cpus:8,ram_gb:64,gpu:A100-80,gpus:1`"
)
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
TYPE_KEYS: Final = frozenset({"cpus", "ram_gb", "gpu", "gpus", "gres", "price"})
PORT_MIN, PORTS = 20_000, 12_000
"""Ports of the jobs' SSH servers: below those that Linux gives to outgoing connections."""
FORMAT: Final = "%i|%T|%j|%B|%P|%k|%r"
FIELDS: Final = 7
SEEN: Final = {
    "PENDING": Seen.PENDING,
    "CONFIGURING": Seen.PENDING,
    "REQUEUED": Seen.PENDING,
    "RESIZING": Seen.RUNNING,
    "RUNNING": Seen.RUNNING,
    "STOPPED": Seen.RUNNING,
    "SUSPENDED": Seen.RUNNING,
    "COMPLETING": Seen.PENDING,
}
"""Jobs in other states have ended."""


class SlurmJob(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    seen: Seen
    token: str
    node: str
    """Empty until it runs."""
    partition: str
    type: str
    """From its comment. Empty: somebody changed it."""
    doing: str


def read_types(text: str) -> tuple[MachineType, ...]:
    """The option `types`: `NAME=PARTITION/KEY:VALUE,…` with semicolons between types."""
    found = tuple(_type(each.strip()) for each in text.split(";") if each.strip())
    if not found:
        raise BadInput("The option `types` names no type", hint=TYPES_HINT)
    if len({each.name for each in found}) < len(found):
        raise BadInput("The option `types` names a type twice", hint=TYPES_HINT)
    return found


def _type(text: str) -> MachineType:
    name, _, rest = text.partition("=")
    partition, _, facts = rest.partition("/")
    values = dict(pair.split(":", 1) for pair in facts.split(",") if ":" in pair)
    is_named = NAME.fullmatch(name) and NAME.fullmatch(partition)
    if not is_named or set(values) - TYPE_KEYS or len(values) < facts.count(",") + 1:
        raise BadInput(f"`{text[:80]}` in the option `types` is not a type", hint=TYPES_HINT)
    try:
        gpus = int(values.get("gpus", "1" if "gpu" in values else "0"))
        card = find_cards(values["gpu"])[0] if gpus else None
        return MachineType(
            name=name,
            region=partition,
            gpu=card.id if card else "",
            gpus=gpus,
            gpu_memory_bytes=card.memory_bytes if card else 0,
            vcpus=int(values.get("cpus", "1")),
            ram_bytes=int(values.get("ram_gb", "1")) * GIB,
            disk_bytes=GIB,
            prices={"on-demand": parse_micros(values.get("price", "0"))},
            currency="USD",
        )
    except (ValueError, KeyError, UnknownName):
        raise BadInput(f"`{text[:80]}` in the option `types` is not a type", hint=TYPES_HINT) from None


def gres_of(text: str) -> dict[str, str]:
    """What each type asks of `--gres`, where the cluster's name of a GPU is not `gpu`."""
    found = {}
    for each in text.split(";"):
        name, _, rest = each.strip().partition("=")
        values = dict(pair.split(":", 1) for pair in rest.partition("/")[2].split(",") if ":" in pair)
        if "gres" in values:
            found[name] = values["gres"]
    return found


def port_of(token: str) -> int:
    """The port of a job's SSH server, the same in every process. If it is taken, the job ends and the next is tried."""
    return PORT_MIN + zlib.crc32(token.encode()) % PORTS


def submit_words(
    mark: str, machine: Machine, partition: str, *, gres: str = "gpu", time_limit: str = ""
) -> list[str]:
    """The options of `sbatch`. A job with the same name and user never runs twice at once (`singleton`)."""
    rental = machine.rental
    assert rental is not None, "`create` checks this"
    words = {
        "job-name": machine_name(mark, rental.token),
        "comment": rental.type,
        "dependency": "singleton",
        "partition": partition,
        "nodes": "1",
        "ntasks": "1",
        "cpus-per-task": str(machine.vcpus),
        "mem": f"{machine.ram_bytes // MIB}M",
        "output": "/dev/null",
        "export": "ALL",  # `sbatch` has nothing of the server; `NONE` would run a login shell first, which can hang
        "chdir": "/",
    }
    if machine.gpus:
        words["gres"] = f"{gres}:{len(machine.gpus)}"
    if time_limit:
        words["time"] = time_limit
    return ["--parsable", "--no-requeue", *(f"--{name}={value}" for name, value in words.items())]


def read_jobs(mark: str, output: str) -> list[SlurmJob]:
    """The jobs with our mark that have not ended, from `squeue`. A name of ours has no `|`; a reason may."""
    found = []
    for line in output.splitlines():
        fields = line.split("|", FIELDS - 1)
        if len(fields) < FIELDS:
            raise ValueError("squeue answered in another form")
        id, state, name, node, partition, type, reason = fields
        token, seen = read_name(mark, name), SEEN.get(state)
        if token and seen is not None:
            where = node if seen == Seen.RUNNING and node not in ("", "n/a", "(null)") else ""
            doing = "" if seen == Seen.RUNNING else f"in the queue of Slurm: {reason[:80]}"
            found.append(
                SlurmJob(
                    id=id, seen=seen, token=token, node=where, partition=partition, type=type, doing=doing
                )
            )
    return found


def script(machine: Machine, host: KeyPair, login: str) -> str:
    """The batch script: an SSH server with the given host key, and the instance's programs beside it.

    Slurm ends everything that the job started when the job is cancelled. The folder is removed then.
    """
    keys = "\n".join([login, *machine.authorized_keys]) + "\n"
    token = machine.rental.token if machine.rental else ""
    lines = [
        "#!/bin/sh",
        "umask 077",
        "export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        'HOME=$(getent passwd "$(id -u)" | cut -d: -f6) && export HOME || exit 1',
        f"here={folder_of(token)}; mkdir -m 700 $here && cd $here || exit 1  # nobody else made it",
        "trap 'kill $server $programs 2>/dev/null; rm -rf \"$here\"' EXIT",
        "trap 'exit 0' TERM INT",
        _file("$here/key", host.private),
        _file("$here/authorized_keys", keys),
        *_programs(machine),
        'sshd=$(command -v sshd) || { echo "sshd is not installed" >&2; exit 1; }',
        f'"$sshd" -D -f /dev/null -h "$here/key" -p {port_of(token)} -o AuthorizedKeysFile="$here/authorized_keys"'
        " -o StrictModes=no -o UsePAM=no -o PidFile=none -o PasswordAuthentication=no"
        " -o KbdInteractiveAuthentication=no &",
        "server=$!",
        "wait $server",
    ]
    return "\n".join(lines) + "\n"


def folder_of(token: str) -> str:
    """Where a job keeps its keys, and the logs and exit codes of its programs, on the disk of its node."""
    return f"/tmp/tera-job-{token}"  # noqa: S108 -- the job ends if it exists


def state_command(token: str, name: str, bytes_max: int) -> Sequence[str]:
    """Prints the exit code of a program, or `-`, and then the end of its log."""
    text = (
        f'cd "{folder_of(token)}" && {{ cat {name}.exit 2>/dev/null || echo -; }}'
        f" && tail -c {bytes_max} {name}.log 2>/dev/null; true"
    )
    return ("sh", "-c", text)


def _programs(machine: Machine) -> list[str]:
    """User-data runs before the command, which may need what it installs. Each runs once."""
    programs: Mapping[str, str] = {
        name: text
        for name, text in (("user-data", machine.user_data), ("command", _command(machine)))
        if text
    }
    written = [_file(f"$here/{name}", text) for name, text in programs.items()]
    runs = [
        f'chmod 700 "$here/{name}"; "$here/{name}" > "$here/{name}.log" 2>&1 < /dev/null;'
        f' echo $? > "$here/{name}.new"; mv "$here/{name}.new" "$here/{name}.exit"'
        for name in programs
    ]
    return [*written, f"( {'; '.join(runs)} ) &", "programs=$!"] if runs else []


def _command(machine: Machine) -> str:
    if not machine.command:
        return ""
    exports = "".join(f"export {name}={quote(text)}\n" for name, text in machine.environment.items())
    return f'#!/bin/sh\ncd "$HOME"\n{exports}exec {join(machine.command)}\n'


def _file(path: str, content: str) -> str:
    encoded = base64.b64encode(content.encode("utf-8", "surrogateescape")).decode("ascii")
    return f'echo {encoded} | base64 -d > "{path}"'
