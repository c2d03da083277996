"""The part of a simulated guest that serves runs: the verbs of `run/guest_program.py` on a simulated disk. Pure.

A program of a run is one that every simulated guest has, or `train STEPS SECONDS SAVE`: it computes a chain of digests,
one for each step, saves a checkpoint every SAVE steps, continues from the newest one, and writes its result to
`$TERA_OUTPUTS/result`. The result is the same however often it was interrupted.
"""

import io
import shlex
import tarfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final
from urllib.request import Request, urlopen

import msgspec
from msgspec.structs import replace

from teraflock.base.clock import microseconds
from teraflock.drivers.simulated import guest as inside
from teraflock.drivers.simulated.model import Guest, SimulatedDisk, SimulatedProgram
from teraflock.instance.driver import Ran
from teraflock.instance.engine_errors import EngineRefused
from teraflock.run.guest import program_text

INCOMING: Final = "/var/lib/teraflock/runs/{}.incoming"
OUTGOING: Final = "/var/lib/teraflock/runs/{}.outgoing"
BUCKET_SECONDS_MAX: Final = 20.0
SIGTERM: Final = "15"
SAVED: Final = "step-"
SAVE_NS: Final = 3 * 10**9
Called = tuple[Guest, bytes]


def is_call(command: Sequence[str]) -> bool:
    return len(command) > 4 and command[0] == "python3" and command[3] == program_text()


def called(found: Guest, command: Sequence[str], stdin: bytes, now: datetime) -> tuple[Guest, Ran]:
    verb, *words = command[4:]
    after, output = _VERBS[verb](found, words, stdin, now)
    return after, Ran(exit_code=0, stdout=output, stderr=b"")


def advanced(found: Guest, now: datetime) -> Guest:
    """Apply what its programs did until now."""
    for key, program in found.disk.programs.items():
        if program.exit_code is None and program.start == found.starts:
            found = replace(found, disk=_program_at(found, key, program, now))
    return found


_CHAIN: Final = [b""]
"""The results of `train`, by number of steps. Always the same, so they are computed once."""


def chain(steps: int) -> bytes:
    """The result of `train` after so many steps."""
    while len(_CHAIN) <= steps:
        _CHAIN.append(sha256(_CHAIN[-1] + str(len(_CHAIN)).encode()).digest())
    return _CHAIN[steps]


def _receive(found: Guest, words: Sequence[str], stdin: bytes, now: datetime) -> Called:
    key, offset = words
    path = INCOMING.format(key)
    held = found.disk.files.get(path, b"")[: int(offset)]
    return replace(found, disk=_with(found.disk, {path: held + stdin}, now)), b""


def _unpack(found: Guest, words: Sequence[str], stdin: bytes, now: datetime) -> Called:
    key, folder, how = words
    files = dict(found.disk.files)
    if how == "replace":
        files = {name: content for name, content in files.items() if not name.startswith(f"{folder}/")}
    packed = files.pop(INCOMING.format(key))
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                files[f"{folder}/{member.name}"] = content.read()
    return replace(found, disk=replace(found.disk, files=files)), b""


def _start(found: Guest, words: Sequence[str], stdin: bytes, now: datetime) -> Called:
    (key,) = words
    if key in found.disk.programs:
        return found, b""
    given = msgspec.json.decode(stdin)
    program = SimulatedProgram(
        command=tuple(given["command"]), environment=given["environment"], began_at=now, start=found.starts
    )
    if program.command[0] == "train":
        program = replace(
            program, first_step=_newest_saved(found.disk, program.environment["TERA_CHECKPOINTS"])
        )
    programs = {**found.disk.programs, key: program}
    return advanced(replace(found, disk=replace(found.disk, programs=programs)), now), b""


def _state(found: Guest, words: Sequence[str], stdin: bytes, now: datetime) -> Called:
    key, offset, most = words[0], int(words[1]), int(words[2])
    program = found.disk.programs.get(key)
    state, log = "absent", b""
    if program is not None:
        log = program.log
        alive = "running" if program.start == found.starts else "lost"
        state = alive if program.exit_code is None else "ended"
    said = {
        "state": state,
        "exit_code": program.exit_code if program else None,
        "log_bytes": len(log),
        "progress": program.progress if program else "",
    }
    return found, msgspec.json.encode(said) + b"\n" + log[offset : offset + most]


def _list(found: Guest, words: Sequence[str], stdin: bytes, now: datetime) -> Called:
    below = words[0].rstrip("/") + "/"
    there = [name for name in sorted(found.disk.files) if name.startswith(below)]
    entries = [
        {
            "name": name.removeprefix(below),
            "mark": sha256(found.disk.files[name]).hexdigest()[:16] + str(found.disk.written_ns.get(name, 0)),
            "size_bytes": len(found.disk.files[name]),
            **_times(found.disk.written_ns.get(name, 0)),
        }
        for name in there
        if "/" not in name.removeprefix(below)
    ]
    return found, msgspec.json.encode(entries)


def _times(written_ns: int) -> dict[str, int]:
    """Every save takes equally long. 0: the file was not saved here."""
    begun = max(0, written_ns - SAVE_NS)
    return {"begun_ns": begun, "written_ns": written_ns, "done_ns": written_ns}


def _signal(found: Guest, words: Sequence[str], stdin: bytes, now: datetime) -> Called:
    key, number = words
    program = found.disk.programs.get(key)
    if program is None or program.exit_code is not None or program.start != found.starts:
        return found, b""
    disk = found.disk
    if number == SIGTERM and program.command[0] == "train":  # it saves before it ends
        disk = _saved(disk, program, _step_at(program, now), now)
    ended = replace(program, exit_code=128 + int(number))
    return replace(found, disk=replace(disk, programs={**disk.programs, key: ended})), b""


def _pack(found: Guest, words: Sequence[str], stdin: bytes, now: datetime) -> Called:
    key, path = words
    content, packed = found.disk.files[path], io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        info = tarfile.TarInfo(path.rpartition("/")[2])
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    made = packed.getvalue()
    said = {"size_bytes": len(made), "digest": sha256(made).hexdigest()}
    return replace(found, disk=_with(found.disk, {OUTGOING.format(key): made}, now)), msgspec.json.encode(
        said
    )


def _push(found: Guest, words: Sequence[str], stdin: bytes, now: datetime) -> Called:
    content = found.disk.files[OUTGOING.format(words[0])]
    _asked(Request(stdin.decode(), data=content, method="PUT"))  # noqa: S310
    return found, b""


def _special(found: Guest, words: Sequence[str], stdin: bytes, now: datetime) -> Called:
    """A simulated disk has only files."""
    return found, b"[]"


def _fetch(found: Guest, words: Sequence[str], stdin: bytes, now: datetime) -> Called:
    key, digest = words
    content = _asked(Request(stdin.decode()))  # noqa: S310
    if sha256(content).hexdigest() != digest:
        raise EngineRefused("What was fetched is damaged")
    return replace(found, disk=_with(found.disk, {INCOMING.format(key): content}, now)), b""


def _asked(request: Request) -> bytes:
    """Buckets are real, also for simulated guests."""
    try:
        with urlopen(request, timeout=BUCKET_SECONDS_MAX) as answer:  # noqa: S310
            content: bytes = answer.read()
            return content
    except OSError as error:
        raise EngineRefused("The bucket did not accept the request") from error


def _program_at(found: Guest, key: str, program: SimulatedProgram, now: datetime) -> SimulatedDisk:
    if program.command[0] == "train":
        return _trained(found.disk, key, program, now)
    done = _executed(found, program.command)
    if now < program.began_at + timedelta(seconds=done.seconds):
        return found.disk
    ended = replace(program, exit_code=done.exit_code, log=done.stdout + done.stderr)
    files = found.disk.files if done.files is None else done.files
    return replace(found.disk, files=files, programs={**found.disk.programs, key: ended})


def _executed(found: Guest, command: Sequence[str]) -> inside.GuestDone:
    if command[0].endswith("/sh"):
        lines = [line for line in command[2].splitlines() if line != "set -e"]
        seconds = sum(float(shlex.split(line)[1]) for line in lines if line.startswith("sleep "))
        return replace(inside.run_script(found.machine, found.disk, "\n".join(lines)), seconds=seconds)
    return inside.execute(found.machine, found.disk, command, b"")


def _trained(disk: SimulatedDisk, key: str, program: SimulatedProgram, now: datetime) -> SimulatedDisk:
    steps, seconds, save = _terms(program)
    step = _step_at(program, now)
    due = [each for each in range(program.first_step + 1, step + 1) if each % save == 0]
    for each in due[-1:]:
        at = program.began_at + timedelta(seconds=seconds * (each - program.first_step))
        disk = _saved(disk, program, each, at)
    lines = "".join(f"step {each}\n" for each in range(program.first_step + 1, step + 1))
    said = msgspec.json.encode({"step": step, "of": steps, "loss": 1 / (step + 1)}).decode()
    program = replace(program, log=lines.encode(), progress=said)
    if step == steps:
        program = replace(program, exit_code=0)
        result = {f"{program.environment['TERA_OUTPUTS']}/result": chain(steps).hex().encode()}
        disk = disk if _node(program) else _with(disk, result, now)
    return replace(disk, programs={**disk.programs, key: program})


def _saved(disk: SimulatedDisk, program: SimulatedProgram, step: int, at: datetime) -> SimulatedDisk:
    """Only node 0 saves, as in most trainings on several machines."""
    if _node(program):
        return disk
    name = f"{program.environment['TERA_CHECKPOINTS']}/{SAVED}{step}"
    return disk if name in disk.files else _with(disk, {name: chain(step).hex().encode()}, at)


def _node(program: SimulatedProgram) -> int:
    return int(program.environment.get("NODE_RANK", "0"))


def _newest_saved(disk: SimulatedDisk, folder: str) -> int:
    """The step of the newest checkpoint that belongs to this chain. A damaged one is not used."""
    start = f"{folder}/{SAVED}"
    steps = [int(name.removeprefix(start)) for name in disk.files if name.startswith(start)]
    good = [each for each in steps if disk.files[f"{start}{each}"] == chain(each).hex().encode()]
    return max(good, default=0)


def _step_at(program: SimulatedProgram, now: datetime) -> int:
    steps, seconds, _ = _terms(program)
    passed = max(0.0, (now - program.began_at).total_seconds())
    return min(steps, program.first_step + int(passed / seconds + 1e-9))


def _terms(program: SimulatedProgram) -> tuple[int, float, int]:
    words = (*program.command[1:], *("10", "1", "5")[len(program.command) - 1 :])
    return int(words[0]), float(words[1]), int(words[2])


def _with(disk: SimulatedDisk, files: Mapping[str, bytes], at: datetime) -> SimulatedDisk:
    times = dict.fromkeys(files, microseconds(at) * 1000)
    return replace(disk, files={**disk.files, **files}, written_ns={**disk.written_ns, **times})


_VERBS: Final[Mapping[str, Callable[[Guest, Sequence[str], bytes, datetime], Called]]] = {
    "receive": _receive,
    "unpack": _unpack,
    "start": _start,
    "state": _state,
    "list": _list,
    "special": _special,
    "signal": _signal,
    "pack": _pack,
    "push": _push,
    "fetch": _fetch,
}
