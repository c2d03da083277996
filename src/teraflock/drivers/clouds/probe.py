"""Whether a rented machine has the GPUs that were promised, judged by CUDA itself. Pure.

`nvidia-smi` is not enough: machines exist where it lists all GPUs and every CUDA program fails.
"""

from typing import Final

import msgspec

MEMORY_SHARE_MIN: Final = 0.9
"""CUDA reports less memory than the nominal amount: up to 7 % with ECC."""
PROGRAM: Final = """
import ctypes, json
found = {"cuda": -1, "memory": []}
try:
    cuda = ctypes.CDLL("libcuda.so.1")
    found["cuda"] = cuda.cuInit(0)
    count = ctypes.c_int()
    if found["cuda"] == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0:
        for number in range(count.value):
            size, device = ctypes.c_size_t(), ctypes.c_int()
            cuda.cuDeviceGet(ctypes.byref(device), number)
            cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device)
            found["memory"].append(size.value)
except OSError:
    pass
print(json.dumps(found))
"""
COMMAND: Final = ("python3", "-c", PROGRAM)
NO_GPUS: Final = ("true",)


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    cuda: int
    """The result of `cuInit`: 0 is success, -1 means that CUDA is not installed."""
    memory: tuple[int, ...]
    """Bytes of each GPU."""


def read(output: bytes) -> Probed | None:
    """What the program printed. The guest may print anything."""
    try:
        return msgspec.json.decode(output.strip().rpartition(b"\n")[2], type=Probed)
    except msgspec.MsgspecError:
        return None


def problem(probed: Probed | None, gpus: int, memory_bytes: int) -> str:
    """What is wrong with the GPUs of a machine; empty: nothing."""
    if not gpus:
        return ""
    if probed is None:
        return "the machine did not report its GPUs"
    if probed.cuda == -1:
        return "CUDA is not installed"
    if probed.cuda:
        return f"CUDA does not start: error {probed.cuda}"
    if len(probed.memory) != gpus:
        return f"CUDA sees {len(probed.memory)} of {gpus} GPUs"
    if memory_bytes and min(probed.memory) < memory_bytes * MEMORY_SHARE_MIN:
        return f"a GPU has {min(probed.memory) >> 30} GiB instead of {memory_bytes >> 30} GiB"
    return ""
