"""Overwrites the memory of one card, or of one slice of a card, with zeros: `python -m teraflock.host.overwrite SLOT`.

It is a separate process, because only the end of a process releases a CUDA context, and because the environment selects
the slice. It allocates all free memory, holds it until everything is written, and prints the result as JSON.
It needs only NVIDIA's driver library.
"""

import ctypes
import json
import os
import sys
from typing import Any, Final

CHUNK_BYTES_MIN: Final = 2 << 20
"""The driver allocates memory in pages of this size."""
COVERED_PERCENT_MIN: Final = 99
OUT_OF_MEMORY: Final = 2


class CudaFailed(Exception):
    pass


def main(slot: str) -> None:
    address, _, slice_id = slot.partition("/")
    if slice_id:
        os.environ["CUDA_VISIBLE_DEVICES"] = slice_id  # CUDA reads it when it starts
    try:
        free, covered = overwrite(ctypes.CDLL("libcuda.so.1"), "" if slice_id else address)
    except (OSError, CudaFailed) as error:
        sys.exit(f"{error}")
    if covered * 100 < free * COVERED_PERCENT_MIN:
        sys.exit(f"only {covered >> 20} of {free >> 20} MiB could be overwritten")
    print(json.dumps({"free_bytes": free, "covered_bytes": covered}))


def overwrite(cuda: Any, address: str) -> tuple[int, int]:
    """The number of free and of overwritten bytes. `address` is empty if only one device is visible."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _check(cuda, cuda.cuInit(0))
    if address:
        _check(cuda, cuda.cuDeviceGetByPCIBusId(ctypes.byref(device), address.encode()))
    else:
        _check(cuda, cuda.cuDeviceGet(ctypes.byref(device), 0))
    _check(cuda, cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _check(cuda, cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    covered, size = 0, free.value
    while size >= CHUNK_BYTES_MIN:
        size -= size % CHUNK_BYTES_MIN
        pointer = ctypes.c_uint64()
        result = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
        if result == OUT_OF_MEMORY:
            size //= 2
            continue
        _check(cuda, result)
        _check(cuda, cuda.cuMemsetD32_v2(pointer, 0, ctypes.c_size_t(size // 4)))
        covered += size
    _check(cuda, cuda.cuCtxSynchronize())
    return free.value, covered


def _check(cuda: Any, result: int) -> None:
    if result:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(result, ctypes.byref(name))
        raise CudaFailed((name.value or b"CUDA failed").decode())


if __name__ == "__main__":
    main(sys.argv[1])
