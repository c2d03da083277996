"""A trace: what one training or inference step allocates, frees and computes, in order.

Shapes are expressions of the trace's symbols, so one trace serves every batch. Invariants:
- storages are numbered in the order of allocation; a storage is freed at most once, after its allocation;
- `events` starts with the construction of the model. `Mark.STEP` starts a step, `Mark.BACKWARD` its backward pass, and
  `Mark.OPTIMIZER` the optimizer's step;
- if `has_optimizer` is false, the events do not include the optimizer, and the estimate adds the requested one.

On disk, a trace has a header of 16 bytes (magic, version, checksum) and a zlib-compressed MessagePack body. So files of
another version and truncated files are detected.
"""

import os
import zlib
from enum import IntEnum
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.workload.expression import Expression
from teraflock.workload.given import given

MAGIC: Final = b"TERATRC\n"
VERSION: Final = 1
HEAD_BYTES: Final = 16
BODY_BYTES_MAX: Final = 256 << 20  # ten times the size of a trace of a hundred thousand operations
GIVEN_BODY_BYTES_MAX: Final = 32 << 20
"""For a trace that was uploaded to a server."""

EVENT_KINDS: Final = 4
FUSED: Final = "fused"
"""The name of a kernel that `torch.compile` made of several operations (`workload/compiled.py`)."""
READ_VALUE: Final = "_local_scalar_dense"
TO_GPU: Final = "copy_to_gpu"
TO_HOST: Final = "copy_to_host"
"""The names of a value that the host reads from the GPU, and of copies between their memories. The attributes of a copy
to the GPU: whether the host's memory is pinned, and whether the host goes on without it."""


class EventKind(IntEnum):
    """The two low bits of an event; the rest is its argument."""

    ALLOCATE = 0
    """Argument: index of the size in bytes among the expressions."""
    FREE = 1
    """Argument: how many allocations ago the storage was allocated; 1 is the last one."""
    OPERATE = 2
    """Argument: index of the operation."""
    MARK = 3
    """Argument: a `Mark`."""


class Mark(IntEnum):
    STEP = 0
    BACKWARD = 1
    OPTIMIZER = 2
    END = 3
    FORWARD = 4
    """A backward pass or an optimizer step has ended. Further forward passes may follow in the same step."""
    PLAIN = 5
    """Outside of backward passes and optimizer steps, operations from here on record nothing for a backward pass."""
    RECORDED = 6
    """From here on they do again, as they do after all other marks."""


KINDS: Final = {
    "p": "parameters",
    "b": "buffers",
    "i": "inputs",
    "g": "gradients",
    "o": "optimizer",
    "a": "activations",
    "c": "autocast_copies",
    "k": "kv_cache",
    "t": "temporaries",
    "w": "workspaces",
}
"""The letter of a storage in `Trace.kinds`, and its name in a breakdown."""


class Tensor(msgspec.Struct, frozen=True, array_like=True):
    dtype: str
    """`f` float32, `b` bfloat16, `h` float16, `d` float64, `l` int64, `i` int32, `u` one byte, `?` bool."""
    shape: list[int]
    """Indices among the expressions."""
    contiguous: bool = True


class TracedOperation(msgspec.Struct, frozen=True, array_like=True):
    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    attributes: list[int] = []
    """For convolutions: stride, padding and dilation (first of each), transposed, groups, gradient mask. For operations
    on lists: the number of tensors in a list."""


class Parameter(msgspec.Struct, frozen=True, array_like=True):
    shape: list[int]
    """Indices among the expressions."""
    dtype: str
    trainable: bool


class SeenInTrace(msgspec.Struct, frozen=True, kw_only=True):
    """What a traced script did, so that the user can check it."""

    parameters: dict[str, int]
    """Of all models that ran, by type."""
    trained: int
    input_shape: list[int] = []
    """The input of the first module of a step."""
    forward_passes: int = 0
    backward_passes: int = 0
    """In one step: more than one with gradient accumulation."""
    optimizers: list[str] = []
    notes: list[str] = []


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    torch: str
    symbols: dict[str, int]
    """Symbol → its value while recording. A trace without symbols applies to one size only."""
    expressions: list[Expression]
    operations: list[TracedOperation]
    parameters: list[Parameter]
    events: list[int]
    kinds: str
    """One letter of `KINDS` per storage, in the order of allocation."""
    has_optimizer: bool = False
    has_backward: bool = True
    precision: str = "fp32"
    views: int = 0
    """Operations of one step that start no kernel but take host time."""
    samples: int = 0
    """Samples per step if `batch` is not a symbol; 0 if unknown."""
    seen: SeenInTrace | None = None
    benchmark: bool = False
    """Whether cuDNN tries its algorithms at the first use of each convolution, with their workspaces."""


DTYPE_BYTES: Final = {"f": 4, "b": 2, "h": 2, "d": 8, "l": 8, "i": 4, "u": 1, "?": 1, "s": 2, "z": 8}


def write_trace(trace: Trace) -> bytes:
    body = zlib.compress(msgspec.msgpack.encode(trace), 9)
    return MAGIC + VERSION.to_bytes(4, "little") + zlib.crc32(body).to_bytes(4, "little") + body


def read_trace(data: bytes, *, name: str, body_bytes_max: int = BODY_BYTES_MAX) -> Trace:
    if data[: len(MAGIC)] != MAGIC:
        raise BadInput(f"`{name}` is not a trace", hint="`tera trace train.py -o job.trace` writes one")
    version = int.from_bytes(data[8:12], "little")
    if len(data) >= HEAD_BYTES and version != VERSION:
        raise BadInput(
            f"`{name}` is a trace of version {version}, but this `tera` reads version {VERSION}",
            hint="Record it again with `tera trace`",
        )
    body = data[HEAD_BYTES:]
    if len(data) < HEAD_BYTES or zlib.crc32(body) != int.from_bytes(data[12:16], "little"):
        raise BadInput(f"`{name}` is truncated or damaged", hint="Record it again with `tera trace`")
    return _unpacked(body, name, body_bytes_max)


def read_trace_file(path: str) -> Trace:
    if (uploaded := given(path)) is not None:
        return read_trace(uploaded, name=path, body_bytes_max=GIVEN_BODY_BYTES_MAX)
    # a str and not a Path: importing pathlib adds 5 ms to a cold start
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            data = file.read()
    except OSError as error:
        raise BadInput(f"`{path}` cannot be read: {error.strerror}") from None
    return read_trace(data, name=os.path.basename(path))  # noqa: PTH119


def _unpacked(body: bytes, name: str, body_bytes_max: int) -> Trace:
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(body, body_bytes_max)
        if unpacker.unconsumed_tail:
            raise BadInput(f"`{name}` decompresses to more than {body_bytes_max >> 20} MiB")
        return msgspec.msgpack.decode(raw, type=Trace)
    except (zlib.error, msgspec.DecodeError):
        raise BadInput(f"`{name}` is damaged", hint="Record it again with `tera trace`") from None
