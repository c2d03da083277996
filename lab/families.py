"""Records families of models: `python -m lab.families [NAME…]` writes workload/data/families/NAME+VARIANT.family.

A family is one architecture of Hugging Face with any widths and any number of layers. It is recorded once, with four
layers in each stack and with widths that share no prime factor, so that every size in the trace can be read as a
product of widths; batch and sequence are symbols as in the zoo. Where each layer begins and ends, forward and backward,
is marked, so that `workload/family.py` can write the trace of as many layers as a config asks for. What holds: the
second and the third layer come out alike, or the recording fails.
"""

import argparse
import logging
import time
import warnings
from contextlib import ExitStack
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import torch

from lab.architectures import IMAGE, Architecture, first, inputs_of
from lab.decoders import decoders
from lab.experts import deepseek
from lab.lora import add_lora, quantize
from lab.record import (
    DECODER_VARIANTS,
    HALF,
    LANGUAGE_VARIANTS,
    VISION_VARIANTS,
    Variant,
    record,
    transformers_recorded,
)
from teraflock.workload.family import STACK, Family, cut, write_family
from teraflock.workload.tracing.recorder import Recorder

OUT = Path("src/teraflock/workload/data/families")
LAYERS = 4
DECODERS = (
    "llama", "llama-gqa", "llama-tied", "llama-tied-gqa", "qwen2-gqa", "qwen2-tied-gqa", "qwen3-gqa", "qwen3-tied-gqa",
    "gemma", "gemma-gqa", "gemma2-gqa", "gemma3-gqa", "phi", "phi3", "phi3-gqa", "mixtral-gqa", "qwen2_moe",
    "qwen2_moe-gqa", "qwen3_moe-gqa",
)  # fmt: skip
"""Families that are also recorded with adapters and quantized weights."""
PLAIN_VARIANTS = (
    *(f"train+{p}" for p in ("bf16", "amp-bf16", "fp32")),
    *(f"infer+{p}" for p in ("bf16", "fp32")),
    *(f"train+{p}+checkpoint" for p in ("bf16", "amp-bf16")),
)
USUAL_VARIANTS = (
    *PLAIN_VARIANTS,
    *(f"train+bf16{c}+lora{a}{b}" for c in ("", "+checkpoint") for a in ("", "-all") for b in ("", "+4bit")),
    "infer+bf16+4bit",
)
"""Other decoders: the ways in which most are trained and served. Each variant is 2 to 5 KB of the wheel."""
MARKS, LAYERS_MAX = 1 << 20, 1 << 10


def architectures() -> dict[str, Architecture]:
    return {**first(), **decoders(), **deepseek()}


def variants_of(name: str) -> tuple[str, ...]:
    if name in DECODERS:
        return (*LANGUAGE_VARIANTS, *DECODER_VARIANTS)
    if name in decoders() or name in deepseek():
        return USUAL_VARIANTS
    return VISION_VARIANTS if architectures()[name].reads == IMAGE else LANGUAGE_VARIANTS


Places = dict[str, tuple[int, int]]
"""The name of a layer's module, with the number of its stack and its number in it."""


def places(net: Any, stacks: tuple[str, ...]) -> Places:
    """Stacks that have the same path are consecutive parts of it."""
    found: Places = {}
    for stack, path in enumerate(stacks):
        size = len(attrgetter(path)(net)) // stacks.count(path)
        start = stacks[:stack].count(path) * size
        found |= {f"{path}.{start + at}": (stack, at) for at in range(size)}
    return found


def marked(
    net: Any, stacks: tuple[str, ...], recorder: Recorder, counted: list[tuple[int, int]]
) -> ExitStack:
    """Mark where layers begin and end in the recorder's events. Loops are 1 and 2 for the first stack, forward and
    backward, 3 and 4 for the second. `counted` gets the views until each mark, and whether it ends a layer."""
    modules = {net.get_submodule(name): place for name, place in places(net, stacks).items()}
    patches = ExitStack()
    for kind in {type(each) for each in modules}:
        patches.enter_context(
            mock.patch.object(kind, "__call__", _marking(kind, modules, stacks, recorder, counted))
        )
    return patches


def _marking(
    kind: Any,
    number: dict[Any, tuple[int, int]],
    stacks: tuple[str, ...],
    recorder: Recorder,
    counted: list[tuple[int, int]],
) -> Any:
    real = kind.__call__
    last = max(at for _, at in number.values())

    def place(loop: int, layer: int, end: int) -> None:
        counted.append((end, recorder.views))
        recorder.events.append((((loop * LAYERS_MAX + layer) * 2 + end) + MARKS) * 4 + 3)

    def called(self: Any, hidden: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.phase != "a":
            return real(self, hidden, *args, **kwargs)
        stack, at = number[self]
        forward, backward, layer = 2 * stack + 1, 2 * stack + 2, STACK * stack + at
        place(forward, layer, 0)
        # A layer ends where the next begins; only the outermost ends are marked.
        follows = stacks[stack] in stacks[:stack]
        if hidden.requires_grad and at == 0 and not follows:
            hidden.register_hook(lambda gradient: place(backward, layer, 1))
        out = real(self, hidden, *args, **kwargs)
        first = out[0] if isinstance(out, tuple) else out
        if first.requires_grad:
            first.register_hook(lambda gradient: place(backward, layer, 0))
        if at == last and stacks[stack] not in stacks[stack + 1 :]:
            place(forward, layer, 1)
        return out

    return called


def build(architecture: Architecture, variant: Variant, sizes: Any, layers: int) -> Any:
    half = HALF.get(variant.precision, torch.float32)
    torch.set_default_dtype(half)
    try:
        net = architecture.make(layers)
    finally:
        torch.set_default_dtype(torch.float32)
    for module in net.modules():
        if hasattr(module, "config"):
            module.config.use_cache = False
    if variant.bits:
        quantize(net, half, variant.bits)
    if variant.lora:
        add_lora(net, sizes["rank"], variant.targets, variant.adapters)
    if variant.checkpointing:
        net.gradient_checkpointing_enable()
        if variant.lora:
            net.enable_input_require_grads()
    words = inputs_of(architecture, net, sizes, half, train=variant.task == "train")
    inputs = [each for each in words.values() if isinstance(each, torch.Tensor)]
    if variant.task == "train":
        return net, lambda: net(**words).loss, inputs
    return net, lambda: net(**words), inputs


def record_family(name: str, text: str, layers: int = LAYERS) -> Family:
    architecture = architectures()[name]
    found: dict[str, Any] = {}
    counted: list[tuple[int, int]] = []

    def marking(variant: Variant, sizes: Any) -> Any:
        net, forward, inputs = build(architecture, variant, sizes, layers)
        recorder = next(each for each in _modes() if isinstance(each, Recorder))
        found["patches"] = marked(net, architecture.stacks, recorder, counted)
        homes = places(net, architecture.stacks)
        found["parameters"] = [_layer_of(each, homes) for each, _ in net.named_parameters()]
        numbers = recorder._number_by_storage
        found["storages"] = {
            numbers[each.untyped_storage()._cdata]: _layer_of(name, homes)
            for name, each in (*net.named_parameters(), *net.named_buffers())
        }
        return net, forward, inputs

    hints = {"batch": 6} if architecture.reads == IMAGE else {"batch": 6, "seq": 112}
    try:
        trace = record(name, Variant(text), marking, hints)
    finally:
        if "patches" in found:
            found["patches"].close()
    marks = {}
    for event in trace.events:
        if event % 4 == 3 and event // 4 >= MARKS:
            number = event // 4 - MARKS
            loop, layer = divmod(number // 2, LAYERS_MAX)
            marks[event] = (-1, -1) if number % 2 else (loop, layer)
    family = cut(trace, found["storages"], found["parameters"], marks, architecture.primes)
    inside = sum(after - views for (end, views), (_, after) in pairwise(counted) if not end)
    return msgspec.structs.replace(family, views_once=trace.views - inside)


def _modes() -> list[Any]:
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    return list(_get_current_dispatch_mode_stack())


def _layer_of(name: str, layers: Places) -> int:
    for module, (stack, at) in layers.items():
        if name.startswith(f"{module}."):
            return STACK * stack + at
    return -1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--missing", action="store_true", help="leave families that are there as they are")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    OUT.mkdir(parents=True, exist_ok=True)
    known = architectures()
    for name in options.names or known:
        for text in options.variant or variants_of(name):
            path = OUT / f"{name}+{text}.family"
            if options.missing and path.exists():
                continue
            start = time.perf_counter()
            try:
                with transformers_recorded():
                    data = write_family(record_family(name, text))
            except Exception as error:  # one that fails must not hide the others
                print(f"{name} {text}: FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)
                continue
            path.write_bytes(data)
            print(f"{name} {text}: {len(data):,} bytes, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
