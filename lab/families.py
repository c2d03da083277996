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
from operator import attrgetter
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from lab.architectures import IMAGE, Architecture, architectures, inputs_of
from lab.lora import add_lora, quantize
from lab.record import (
    DECODER_VARIANTS,
    HALF,
    LANGUAGE_VARIANTS,
    VISION_VARIANTS,
    Variant,
    record,
)
from teraflock.workload.family import STACK, Family, cut, write_family
from teraflock.workload.tracing.eager import transformers_eager
from teraflock.workload.tracing.recorder import Recorder

OUT = Path("src/teraflock/workload/data/families")
LAYERS = 4
DECODERS = (
    "llama", "llama-gqa", "llama-tied", "llama-tied-gqa", "qwen2-gqa", "qwen2-tied-gqa", "qwen3-gqa", "qwen3-tied-gqa",
    "gemma", "gemma-gqa", "gemma2-gqa", "gemma3-gqa", "phi", "phi3", "phi3-gqa", "mixtral-gqa", "qwen2_moe",
    "qwen2_moe-gqa", "qwen3_moe-gqa",
)  # fmt: skip
"""Families that are also recorded with adapters and quantized weights."""
MARKS, LAYERS_MAX = 1 << 20, 1 << 10


def marked(net: Any, stacks: tuple[str, ...], recorder: Recorder) -> ExitStack:
    """Mark where layers begin and end in the recorder's events. Loops are 1 and 2 for the first stack, forward and
    backward, 3 and 4 for the second."""
    number: dict[int, tuple[int, int]] = {}
    for stack, path in enumerate(stacks):
        number |= {id(layer): (stack, at) for at, layer in enumerate(attrgetter(path)(net))}
    depths = [len(attrgetter(path)(net)) for path in stacks]
    patches = ExitStack()
    for kind in {type(attrgetter(path)(net)[0]) for path in stacks}:
        patches.enter_context(mock.patch.object(kind, "__call__", _marking(kind, number, depths, recorder)))
    return patches


def _marking(kind: Any, number: dict[int, tuple[int, int]], depths: list[int], recorder: Recorder) -> Any:
    real = kind.__call__

    def place(loop: int, layer: int, end: int) -> None:
        recorder.events.append((((loop * LAYERS_MAX + layer) * 2 + end) + MARKS) * 4 + 3)

    def called(self: Any, hidden: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.phase != "a":
            return real(self, hidden, *args, **kwargs)
        stack, at = number[id(self)]
        forward, backward, layer = 2 * stack + 1, 2 * stack + 2, STACK * stack + at
        place(forward, layer, 0)
        # A layer ends where the next begins; only the outermost ends are marked.
        if hidden.requires_grad and at == 0:
            hidden.register_hook(lambda gradient: place(backward, layer, 1))
        out = real(self, hidden, *args, **kwargs)
        first = out[0] if isinstance(out, tuple) else out
        if first.requires_grad:
            first.register_hook(lambda gradient: place(backward, layer, 0))
        if at == depths[stack] - 1:
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

    def marking(variant: Variant, sizes: Any) -> Any:
        net, forward, inputs = build(architecture, variant, sizes, layers)
        recorder = next(each for each in _modes() if isinstance(each, Recorder))
        found["patches"] = marked(net, architecture.stacks, recorder)
        found["parameters"] = [_layer_of(each, architecture.stacks) for each, _ in net.named_parameters()]
        numbers = recorder._number_by_storage
        found["storages"] = {
            numbers[each.untyped_storage()._cdata]: _layer_of(name, architecture.stacks)
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
    return cut(trace, found["storages"], found["parameters"], marks, architecture.primes)


def _modes() -> list[Any]:
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    return list(_get_current_dispatch_mode_stack())


def _layer_of(name: str, stacks: tuple[str, ...]) -> int:
    for stack, path in enumerate(stacks):
        if name.startswith(f"{path}."):
            return STACK * stack + int(name[len(path) + 1 :].split(".")[0])
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
        variants = VISION_VARIANTS if known[name].reads == IMAGE else LANGUAGE_VARIANTS
        if name in DECODERS:
            variants = (*variants, *DECODER_VARIANTS)
        for text in options.variant or variants:
            path = OUT / f"{name}+{text}.family"
            if options.missing and path.exists():
                continue
            start = time.perf_counter()
            try:
                with transformers_eager():
                    data = write_family(record_family(name, text))
            except Exception as error:  # one that fails must not hide the others
                print(f"{name} {text}: FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)
                continue
            path.write_bytes(data)
            print(f"{name} {text}: {len(data):,} bytes, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
