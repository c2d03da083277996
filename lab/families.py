"""Records families of models: `python -m lab.families [NAME…]` writes workload/data/families/NAME+VARIANT.family.

A family is one architecture of Hugging Face with any widths and any number of layers. It is recorded once, with four
layers and with widths that share no prime factor, so that every size in the trace can be read as a product of widths.
Batch and sequence are symbols as in the zoo. The recording marks where each layer begins and ends, forward and
backward, so that `workload/family.py` can write the trace for any number of layers. Invariant: the second and the third
layer are equal, or the recording fails.
"""

import argparse
import logging
import re
import time
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import transformers as hf

from lab.record import LANGUAGE_VARIANTS, Variant, build_language, record
from teraflock.workload.family import Family, cut, write_family
from teraflock.workload.tracing.eager import transformers_eager
from teraflock.workload.tracing.recorder import Recorder

OUT = Path("src/teraflock/workload/data/families")
LAYERS = 4
FORWARD_LAYER, BACKWARD_LAYER = 1, 2
WIDTHS = {"kv": 7, "group": 5, "head": 8 * 13, "hidden": 16 * 19, "inter": 16 * 23, "vocab": 16 * 29}
PRIMES = {
    "kv": (7, 1),
    "group": (5, 1),
    "head": (13, 8),
    "hidden": (19, 16),
    "inter": (23, 16),
    "vocab": (29, 16),
}
COMMON = {
    "hidden_size": WIDTHS["hidden"],
    "intermediate_size": WIDTHS["inter"],
    "num_attention_heads": WIDTHS["kv"] * WIDTHS["group"],
    "num_key_value_heads": WIDTHS["kv"],
    "head_dim": WIDTHS["head"],
    "vocab_size": WIDTHS["vocab"],
    "max_position_embeddings": 4096,
}
DECODERS: dict[str, tuple[Any, Any]] = {
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig),
    "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config),
    "qwen3": (hf.Qwen3ForCausalLM, hf.Qwen3Config),
}


def make(name: str, layers: int, *, tied: bool, **widths: Any) -> Any:
    model, config = DECODERS[name]
    given = {**COMMON, **widths}
    wide = given["num_attention_heads"] * given["head_dim"]
    made = config(num_hidden_layers=layers, tie_word_embeddings=tied, **{**given, "hidden_size": wide})
    made.hidden_size = given["hidden_size"]  # set last: some configs require a multiple of the heads
    return model(made)


def marked(net: Any, recorder: Recorder) -> Any:
    """The model, with the start and end of each layer marked in the recorder's events."""
    layers = list(net.model.layers)
    number = {id(layer): place for place, layer in enumerate(layers)}
    kind = type(layers[0])
    real = kind.__call__

    def place(letter: int, layer: int, end: int) -> None:
        recorder.events.append((((letter * LAYERS_MAX + layer) * 2 + end) + MARKS) * 4 + 3)

    def called(self: Any, hidden: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.phase != "a":
            return real(self, hidden, *args, **kwargs)
        at = number[id(self)]
        place(FORWARD_LAYER, at, 0)
        if (
            hidden.requires_grad and at == 0
        ):  # a layer ends where the next begins, so only the outermost ends are marked
            hidden.register_hook(lambda gradient: place(BACKWARD_LAYER, at, 1))
        out = real(self, hidden, *args, **kwargs)
        first = out[0] if isinstance(out, tuple) else out
        if first.requires_grad:
            first.register_hook(lambda gradient: place(BACKWARD_LAYER, at, 0))
        if at == len(layers) - 1:
            place(FORWARD_LAYER, at, 1)
        return out

    return mock.patch.object(kind, "__call__", called)


MARKS, LAYERS_MAX = 1 << 20, 1 << 10


def record_family(
    name: str, text: str, *, tied: bool, grouped: bool, layers: int = LAYERS, **widths: Any
) -> Family:
    found: dict[str, Any] = {}
    if not grouped:
        widths = {"num_key_value_heads": COMMON["num_attention_heads"], **widths}
    build = build_language(lambda: make(name, layers, tied=tied, **widths))

    def marking(variant: Variant, sizes: Any) -> Any:
        net, forward, inputs = build(variant, sizes)
        recorder = next(each for each in _modes() if isinstance(each, Recorder))
        found["patch"] = marked(net, recorder)
        found["patch"].start()
        found["parameters"] = [_layer_of(name) for name, _ in net.named_parameters()]
        numbers = recorder._number_by_storage
        found["storages"] = {
            numbers[each.untyped_storage()._cdata]: _layer_of(name) for name, each in net.named_parameters()
        }
        return net, forward, inputs

    try:
        trace = record(name, Variant(text), marking, {"batch": 6, "seq": 112})
    finally:
        if "patch" in found:
            found["patch"].stop()
    marks = {}
    for event in trace.events:
        if event % 4 == 3 and event // 4 >= MARKS:
            number = event // 4 - MARKS
            letter, layer = divmod(number // 2, LAYERS_MAX)
            marks[event] = (-1, -1) if number % 2 else (letter, layer)
    return cut(trace, found["storages"], found["parameters"], marks, PRIMES)


def _modes() -> list[Any]:
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    return list(_get_current_dispatch_mode_stack())


def _layer_of(name: str) -> int:
    match = re.search(r"\.layers\.(\d+)\.", name)
    return int(match[1]) if match else -1


KINDS = {
    "llama": ((True, True), (False, True), (False, False), (True, False)),
    "qwen2": ((True, True), (False, True)),
    "qwen3": ((True, True), (False, True)),
}
"""Whether the embedding is also the head, and whether several heads share keys and values."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--variant", action="append", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    OUT.mkdir(parents=True, exist_ok=True)
    for name in options.names or DECODERS:
        for tied, grouped in KINDS[name]:
            for text in options.variant or LANGUAGE_VARIANTS:
                start = time.perf_counter()
                with transformers_eager():
                    family = record_family(name, text, tied=tied, grouped=grouped)
                data = write_family(family)
                kind = f"{name}{'-tied' if tied else ''}{'-gqa' if grouped else ''}"
                (OUT / f"{kind}+{text}.family").write_bytes(data)
                print(f"{kind} {text}: {len(data):,} bytes, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
