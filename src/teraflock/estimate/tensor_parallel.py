"""Tensor parallelism within one machine, as in Megatron: derives the trace that each GPU runs.

Divided: attention heads, the hidden units of MLPs and the vocabulary. This divides matrices, their gradients and
optimizer state, and the activations that are wider than the hidden state. Not divided: norms, vectors, position tables,
and activations as wide as the hidden state. These include queries, keys and values before they are split into heads, so
the memory is slightly above Megatron's. Each layer and pass has two all-reduces of the hidden state, which do not
overlap with computation. All of this is computed, not measured.
"""

from collections.abc import Mapping
from math import prod
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.catalog.model import Card
from teraflock.estimate.operation import MATMULS
from teraflock.estimate.parallel import link_bytes_per_second
from teraflock.workload.expression import Expression, evaluate_all
from teraflock.workload.model import Workload
from teraflock.workload.trace import (
    DTYPE_BYTES,
    EVENT_KINDS,
    EventKind,
    Parameter,
    Tensor,
    Trace,
    TracedOperation,
)

TENSOR_MAX: Final = 8
FLOAT_BYTES: Final = 4


class Blocks(msgspec.Struct, frozen=True):
    """The transformer blocks of a model."""

    width: int
    heads: int
    key_heads: int
    reduces: int
    """All-reduces of a forward pass: two per layer, or three if the layer also attends to an encoder."""
    positions: int = 0
    """Rows of the position table, which is not divided."""


def _plain(layers: int, width: int, heads: int, key_heads: int = 0, positions: int = 0) -> Blocks:
    return Blocks(width, heads, key_heads or heads, 2 * layers, positions)


BLOCKS: Final = {
    "bert-base": _plain(12, 768, 12, positions=512),
    "bert-large": _plain(24, 1024, 16, positions=512),
    "roberta-base": _plain(12, 768, 12, positions=514),
    "distilbert": _plain(6, 768, 12, positions=512),
    "gpt2": _plain(12, 768, 12, positions=1024),
    "gpt2-medium": _plain(24, 1024, 16, positions=1024),
    "gpt2-large": _plain(36, 1280, 20, positions=1024),
    "gpt2-xl": _plain(48, 1600, 25, positions=1024),
    "t5-base": Blocks(768, 12, 12, 12 * 2 + 12 * 3),
    "llama-1b": _plain(16, 2048, 32, 8),
    "llama-3b": _plain(28, 3072, 24, 8),
    "llama-8b": _plain(32, 4096, 32, 8),
    "qwen2-0.5b": _plain(24, 896, 14, 2),
    "opt-1.3b": _plain(24, 2048, 32, positions=2050),
    "vit_b_16": _plain(12, 768, 12),
    "vit_l_16": _plain(24, 1024, 16),
}
PATCH: Final = 16


def blocks_of(model: str, ways: int) -> Blocks:
    """The blocks of a model, checked to be divisible among `ways` GPUs."""
    if not 1 < ways <= TENSOR_MAX:
        raise BadInput(f"Tensor parallelism needs 2 to {TENSOR_MAX} GPUs of one machine, not {ways}")
    known = BLOCKS.get(model)
    if known is None:
        raise BadInput(
            f"Tensor parallelism does not support `{model}`: it has no transformer blocks that Teraflock knows",
            hint="Remove `--tensor-parallel`. It works with the language models and ViTs of the zoo",
        )
    for heads, name in ((known.heads, "attention heads"), (known.key_heads, "key and value heads")):
        if heads % ways:
            able = [
                each
                for each in range(2, TENSOR_MAX + 1)
                if not (known.heads % each or known.key_heads % each)
            ]
            raise BadInput(
                f"{model} has {heads} {name}, which cannot be divided evenly among {ways} GPUs",
                hint=f"Use `--tensor-parallel {'`, `'.join(map(str, able))}`"
                if able
                else "Remove `--tensor-parallel`",
            )
    return known


def reduce_seconds(workload: Workload, card: Card, ways: int) -> float:
    """The time of the all-reduces of one step."""
    blocks = blocks_of(workload.model, ways)
    size = 4 if workload.precision in ("fp32", "tf32") else 2
    moved = workload.batch * _tokens(workload) * blocks.width * size
    passes = 1 if workload.task == "infer" else 3 if workload.gradient_checkpointing else 2
    each = 2 * (ways - 1) / ways * moved / link_bytes_per_second(card, ways)
    return passes * blocks.reduces * each


def _tokens(workload: Workload) -> int:
    if workload.image_size:
        return (workload.image_size // PATCH) ** 2 + 1
    return workload.seq or 0


def divided(trace: Trace, symbols: Mapping[str, int], workload: Workload, ways: int) -> Trace:
    """The trace that each of `ways` GPUs runs."""
    return _Divider(trace, symbols, workload, blocks_of(workload.model, ways), ways).trace()


class _Divider:
    """Decides by sizes: a constant is a width of the model, a size with a symbol is a batch or a length."""

    def __init__(
        self, trace: Trace, symbols: Mapping[str, int], workload: Workload, blocks: Blocks, ways: int
    ) -> None:
        self._trace, self._blocks, self._ways = trace, blocks, ways
        self._sizes = evaluate_all(trace.expressions, symbols)
        self._lora = bool(workload.lora_rank)
        self._expressions: list[Expression] = list(trace.expressions)
        self._parts: dict[int, int] = {}
        self._tokens = max(1, workload.batch * _tokens(workload))
        self._table = next((each for each in trace.parameters if self._is_table(each)), None)
        matrices = [each for each in trace.parameters if self._is_matrix(each)]
        self._wide = {
            size for each in matrices for at in each.shape if (size := self._sizes[at]) > blocks.width
        }
        self._weights = {self._bytes(each) for each in trace.parameters if self._is_divided(each)}
        if workload.precision.startswith("amp"):
            self._weights |= {size // 2 for size in self._weights}  # copies in 16 bits

    def trace(self) -> Trace:
        return msgspec.structs.replace(
            self._trace,
            parameters=[self._parameter(each) for each in self._trace.parameters],
            operations=[self._operation(each) for each in self._trace.operations],
            events=self._events(),
            expressions=self._expressions,
        )

    def _is_matrix(self, parameter: Parameter) -> bool:
        """Excludes the position table and the LoRA matrices, which are small."""
        if len(parameter.shape) != 2 or parameter is self._table or (self._lora and parameter.trainable):
            return False
        return min(self._sizes[at] for at in parameter.shape) > self._blocks.heads

    def _is_table(self, parameter: Parameter) -> bool:
        shape = [self._sizes[at] for at in parameter.shape]
        return shape == [self._blocks.positions, self._blocks.width]

    def _is_divided(self, parameter: Parameter) -> bool:
        if len(parameter.shape) == 1 and not (self._lora and parameter.trainable):
            return self._sizes[parameter.shape[0]] in self._wide
        return self._is_matrix(parameter)

    def _bytes(self, parameter: Parameter) -> int:
        return prod(self._sizes[at] for at in parameter.shape) * DTYPE_BYTES[parameter.dtype]

    def _parameter(self, parameter: Parameter) -> Parameter:
        if not self._is_divided(parameter):
            return parameter
        shape = self._in_wide(parameter.shape)
        if shape == parameter.shape:
            shape = [self._part(shape[0]), *shape[1:]]
        return msgspec.structs.replace(parameter, shape=shape)

    def _events(self) -> list[int]:
        """The outputs of an operation are allocated right before it and are divided in the same way."""
        found = list(self._trace.events)
        fresh: list[int] = []
        for place, event in enumerate(self._trace.events):
            kind, at = event % EVENT_KINDS, event // EVENT_KINDS
            if kind == EventKind.ALLOCATE:
                fresh.append(place)
                if self._is_divided_storage(at):
                    found[place] = self._part(at) * EVENT_KINDS + kind
            elif kind == EventKind.OPERATE:
                outputs = self._trace.operations[at].outputs
                if len(outputs) == len(fresh):
                    for born, output in zip(fresh, outputs, strict=True):
                        if self._has_heads(output):
                            size = self._trace.events[born] // EVENT_KINDS
                            found[born] = self._part(size) * EVENT_KINDS + EventKind.ALLOCATE
                fresh = []
        return found

    def _has_heads(self, tensor: Tensor) -> bool:
        shape = tensor.shape
        return len(shape) > 2 and (
            self._is_heads(shape[0], batch=True) or (len(shape) > 3 and self._is_heads(shape[1], batch=False))
        )

    def _is_divided_storage(self, at: int) -> bool:
        size = self._sizes[at]
        if type(self._trace.expressions[at]) is int:
            return size in self._weights
        return size > FLOAT_BYTES * self._blocks.width * self._tokens

    def _operation(self, operation: TracedOperation) -> TracedOperation:
        name = operation.name.split(".")[0]
        if name in MATMULS and name not in ("bmm", "baddbmm"):
            return self._product(operation)
        return msgspec.structs.replace(
            operation,
            inputs=[self._tensor(each) for each in operation.inputs],
            outputs=[self._tensor(each) for each in operation.outputs],
        )

    def _product(self, operation: TracedOperation) -> TracedOperation:
        """Divide a matrix product along a wide side, else along the inner dimension, or along the rows if the inner
        dimension runs over all tokens."""
        inputs = [self._wide_tensor(each) for each in operation.inputs]
        outputs = [self._wide_tensor(each) for each in operation.outputs]
        left, right = operation.inputs[-2:]
        if inputs[-2:] == [left, right] and len(left.shape) == len(right.shape) == 2:
            (rows, inner), columns = left.shape, right.shape[1]
            if self._is_width(inner) and (self._is_width(columns) or self._is_width(rows)):
                inputs[-2:] = [
                    _shaped(left, [rows, self._part(inner)]),
                    _shaped(right, [self._part(inner), columns]),
                ]
            elif self._is_width(rows) and self._is_width(columns):
                inputs[-2] = _shaped(left, [self._part(rows), inner])
                outputs = [_shaped(each, [self._part(each.shape[0]), *each.shape[1:]]) for each in outputs]
        return msgspec.structs.replace(operation, inputs=inputs, outputs=outputs)

    def _is_width(self, at: int) -> bool:
        """Whether a size is a width of the model, not a batch or a length."""
        return type(self._trace.expressions[at]) is int and self._sizes[at] > self._blocks.heads

    def _tensor(self, tensor: Tensor) -> Tensor:
        """Heads are the second dimension, or multiplied into the batch. Without heads, divide a wide side."""
        shape = tensor.shape
        if len(shape) >= 3:
            if self._is_heads(shape[0], batch=True):
                return _shaped(tensor, [self._part(shape[0]), *shape[1:]])
            if len(shape) > 3 and self._is_heads(shape[1], batch=False):
                return _shaped(tensor, [shape[0], self._part(shape[1]), *shape[2:]])
        return self._wide_tensor(tensor)

    def _is_heads(self, at: int, *, batch: bool) -> bool:
        counts = {self._blocks.heads, self._blocks.key_heads}
        expression = self._trace.expressions[at]
        if not batch:
            return type(expression) is int and expression in counts
        return type(expression) is list and any(expression == ["*", each, "batch"] for each in counts)

    def _wide_tensor(self, tensor: Tensor) -> Tensor:
        return _shaped(tensor, self._in_wide(tensor.shape))

    def _in_wide(self, shape: list[int]) -> list[int]:
        wide = [type(self._trace.expressions[at]) is int and self._sizes[at] in self._wide for at in shape]
        return [self._part(at) if each else at for at, each in zip(shape, wide, strict=True)]

    def _part(self, at: int) -> int:
        """The index of this size divided by the number of GPUs, rounded up."""
        if at not in self._parts:
            self._parts[at] = len(self._expressions)
            self._expressions.append(["//", ["+", self._trace.expressions[at], self._ways - 1], self._ways])
        return self._parts[at]


def _shaped(tensor: Tensor, shape: list[int]) -> Tensor:
    return msgspec.structs.replace(tensor, shape=shape)
