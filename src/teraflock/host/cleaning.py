"""Makes a card as good as new before another project gets it.

Its memory is overwritten, and what a tenant may have set (clocks, power limit, compute mode) is put back. A card that
some process still uses, or whose memory cannot be overwritten, is not clean, and is not given away.
"""

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from teraflock.base.errors import Refused
from teraflock.host.nvml import NoNvml, opened

OVERWRITE_SECONDS_MAX: Final = 120


class NotClean(Refused):
    """A GPU could not be wiped, so it was not given to another project."""

    code = "card_not_clean"
    remedy = "The operator looks at the GPU: `tera host inspect`."


class Cleaned(msgspec.Struct, frozen=True, kw_only=True):
    covered_bytes: int
    """Memory that was overwritten."""
    free_bytes: int
    """Memory that was there to be overwritten."""
    put_back: tuple[str, ...] = ()
    """What was set to its default."""


def clean(slot: str) -> Cleaned:
    """`slot`: as in `GpuReport`. Raises `NotClean`."""
    address, _, slice_id = slot.partition("/")
    try:
        with opened() as nvml:
            card = nvml.nvmlDeviceGetHandleByPciBusId(address.encode())
            part = nvml.nvmlDeviceGetHandleByUUID(slice_id.encode()) if slice_id else card
            _check_unused(nvml, part, slot)
            put_back = () if slice_id else _put_back(nvml, card)  # the card is shared with other slices
    except NoNvml as reason:
        raise _not_clean(slot, str(reason)) from None
    except NotClean:
        raise
    except (
        Exception
    ) as error:  # NVML's errors are untyped, and a broken card breaks in ways nobody has listed
        raise _not_clean(slot, str(error)) from error
    return msgspec.structs.replace(_overwritten(slot), put_back=put_back)


def _overwritten(slot: str) -> Cleaned:
    command = [sys.executable, "-m", "teraflock.host.overwrite", slot]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=OVERWRITE_SECONDS_MAX,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise _not_clean(slot, f"its memory was not overwritten within {OVERWRITE_SECONDS_MAX} s") from None
    if done.returncode:
        raise _not_clean(slot, done.stderr.strip()[-200:] or "its memory cannot be overwritten")
    return msgspec.json.decode(done.stdout, type=Cleaned)


def _check_unused(nvml: Any, part: Any, slot: str) -> None:
    users = [process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(part)]
    if users:
        raise _not_clean(slot, f"process {users[0]} still uses it")


def _put_back(nvml: Any, card: Any) -> tuple[str, ...]:
    """Each on its own: not every card has all of these settings, and one it does not have needs no putting back."""
    acts: dict[str, Callable[[], object]] = {
        "GPU clocks": lambda: nvml.nvmlDeviceResetGpuLockedClocks(card),
        "memory clocks": lambda: nvml.nvmlDeviceResetMemoryLockedClocks(card),
        "application clocks": lambda: nvml.nvmlDeviceResetApplicationsClocks(card),
        "power limit": lambda: nvml.nvmlDeviceSetPowerManagementLimit(
            card, nvml.nvmlDeviceGetPowerManagementDefaultLimit(card)
        ),
        "compute mode": lambda: nvml.nvmlDeviceSetComputeMode(card, nvml.NVML_COMPUTEMODE_DEFAULT),
    }
    done = []
    for what, act in acts.items():
        with suppress(nvml.NVMLError):
            act()
            done.append(what)
    return tuple(done)


def _not_clean(slot: str, reason: str) -> NotClean:
    return NotClean(
        "A card of the host could not be cleaned for its next user",
        hint="Try again, or ask the operator: `tera host show` lists the cards",
        context={"slot": slot, "reason": reason},
    )
