"""Records the zoo: `python -m lab.record [NAME…] -o FOLDER` with PyTorch (CPU) and transformers.

It runs each entry once under FakeTensorMode with batch, sequence, image size and LoRA rank as symbols, and writes one
trace per variant (task, precision, checkpointing, LoRA).
"""

import argparse
import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from lab.lora import add_lora
from teraflock.workload.trace import Mark, Trace, write_trace
from teraflock.workload.tracing.cuda import CudaChoices
from teraflock.workload.tracing.eager import transformers_eager
from teraflock.workload.tracing.pretending import pretending
from teraflock.workload.tracing.recorder import Recorder

HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Variant:
    def __init__(self, text: str) -> None:
        words = text.split("+")
        self.text = text
        self.task, self.precision = words[0], words[1]
        self.checkpointing = "checkpoint" in words
        targets = {"lora": "query-value", "lora-all": "all"}
        self.targets = next((targets[word] for word in words if word in targets), "")
        self.lora = bool(self.targets)
        self.bits = next((int(word[0]) for word in words if word in ("4bit", "8bit")), 0)
        self.adapters = torch.float32 if "fp32-adapters" in words else None
        self.cache = "cache" in words


LORA_RANK_HINT = 24


@contextmanager
def transformers_recorded() -> Iterator[None]:
    """transformers as it runs on a GPU: eager, and with one sequence in each row. It reads that from positions, and
    sizes that are symbols leave them without values. PyTorch's own form of `polar` without values, which DeepSeek V2
    calls, would fix the length of the sequence."""
    import transformers.masking_utils as masks
    from torch._decomp import decomposition_table

    look = masks.find_packed_sequence_indices

    def one_sequence(position_ids: Any) -> None:
        look(position_ids)  # its operations run all the same

    def polar(length: Any, angle: Any) -> Any:
        return angle.new_empty(angle.shape, dtype=angle.dtype.to_complex())

    with (
        transformers_eager(),
        mock.patch.object(masks, "find_packed_sequence_indices", one_sequence),
        mock.patch.dict(decomposition_table, {torch.ops.aten.polar.default: polar}),
    ):
        yield


def symbol(env: Any, name: str, value: int) -> Any:
    made = env.create_symbol(
        value, source=ConstantSource(name), dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None
    )
    return env.create_symintnode(made, hint=value)


def record(name: str, variant: Variant, build: Any, hints: dict[str, int]) -> Trace:
    """`build(variant, sizes)` returns the model and a function that computes the loss or the output."""
    env = ShapeEnv()
    if variant.lora:
        hints = {**hints, "rank": LORA_RANK_HINT}
    recorder, choices = Recorder(), CudaChoices()
    choices.autocast.on_copy = lambda copy: recorder.tag([copy], "c")
    with pretending(choices), FakeTensorMode(shape_env=env), recorder, choices:
        sizes = {key: symbol(env, key, value) for key, value in hints.items()}
        net, forward, inputs = build(variant, sizes)
        recorder.tag(net.parameters(), "p")
        recorder.tag(net.buffers(), "b")
        recorder.tag(inputs, "i")
        views = recorder.views
        recorder.mark(Mark.STEP)
        recorder.phase = "a"
        if variant.task == "train":
            _train(net, forward, variant, recorder, choices)
        else:
            _infer(net, forward, variant)
        recorder.mark(Mark.OPTIMIZER)
        recorder.mark(Mark.END)
        parameters = [recorder.parameter(each) for each in net.parameters()]
        trace = Trace(
            name=name,
            torch=str(torch.__version__),
            symbols=dict(hints),
            expressions=_renamed(recorder.expressions, sizes),
            operations=list(recorder.operations),
            parameters=parameters,
            events=list(recorder.events),
            kinds="".join(recorder.kinds),
            has_backward=variant.task == "train",
            precision=variant.precision,
            views=recorder.views - views,
        )
        recorder.paused = True
    fixed = [str(guard.expr) for guard in env.guards if _is_limit(guard.expr)]
    if fixed:
        raise ValueError(f"valid only if {fixed}")
    return trace


def _is_limit(expression: Any) -> bool:
    """Whether an equality fails for some sizes. Others, such as x = x² // x, are only not simplified."""
    if type(expression).__name__ != "Equality":
        return False
    symbols = sorted(expression.free_symbols, key=str)
    return not all(
        expression.subs({symbol: size + 31 * at for at, symbol in enumerate(symbols)})
        for size in (64, 97, 224, 1000)
    )


def _train(net: Any, forward: Any, variant: Variant, recorder: Recorder, choices: CudaChoices) -> None:
    net.train()
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=variant.precision.startswith("amp")):
        loss = forward()
    recorder.mark(Mark.BACKWARD)
    recorder.phase = "t"
    # Recomputed parts must see the choices too; a CUDA build of PyTorch leaves the mode in the backward pass.
    with mock.patch.object(
        torch.autograd, "_engine_run_backward", choices.within(torch.autograd._engine_run_backward)
    ):
        loss.backward()
    recorder.tag([each.grad for each in net.parameters() if each.grad is not None], "g")
    recorder.tag([loss], "a")


def _infer(net: Any, forward: Any, variant: Variant) -> None:
    net.eval()
    with (
        torch.no_grad(),
        torch.autocast("cuda", dtype=torch.bfloat16, enabled=variant.precision.startswith("amp")),
    ):
        forward()


def _renamed(expressions: list[Any], sizes: dict[str, Any]) -> list[Any]:
    names = {str(value.node._expr): key for key, value in sizes.items()}

    def walk(each: Any) -> Any:
        if isinstance(each, str):
            return names[each]
        return [each[0], *[walk(part) for part in each[1:]]] if isinstance(each, list) else each

    return [walk(each) for each in expressions]


def build_language(make: Any) -> Any:
    def build(variant: Variant, sizes: dict[str, Any]) -> Any:
        half = HALF.get(variant.precision, torch.float32)
        torch.set_default_dtype(half)
        try:
            net = make()
        finally:
            torch.set_default_dtype(torch.float32)
        ids = torch.randint(0, 20000, (sizes["batch"], sizes["seq"]))
        net.config.use_cache = variant.cache
        if variant.lora:
            add_lora(net, sizes["rank"])
        if variant.checkpointing:
            net.gradient_checkpointing_enable()
            if variant.lora:
                net.enable_input_require_grads()
        if variant.task == "train":
            return net, lambda: net(input_ids=ids, labels=ids).loss, [ids]
        if net.config.is_encoder_decoder:
            return net, lambda: net(input_ids=ids, decoder_input_ids=ids), [ids]
        return net, lambda: net(input_ids=ids), [ids]

    return build


def build_vision(make: Any, pixels: int) -> Any:
    def build(variant: Variant, sizes: dict[str, Any]) -> Any:
        image = sizes.get("image", pixels)
        half = HALF.get(variant.precision, torch.float32)
        net = make(image).to(half)
        x = torch.randn(sizes["batch"], 3, image, image, dtype=half)
        if variant.task == "infer":
            return net, lambda: net(x), [x]
        y = torch.randint(0, 1000, (sizes["batch"],))
        return net, lambda: torch.nn.CrossEntropyLoss()(net(x), y), [x, y]

    return build


VISION_VARIANTS = ("train+fp32", "train+amp-bf16", "train+bf16", "infer+fp32", "infer+bf16", "infer+amp-bf16")
LANGUAGE_VARIANTS = (
    *VISION_VARIANTS,
    *(f"train+{p}+checkpoint" for p in ("fp32", "amp-bf16", "bf16")),
    *(f"train+{p}+lora" for p in ("fp32", "amp-bf16", "bf16")),
    *(f"train+{p}+checkpoint+lora" for p in ("fp32", "amp-bf16", "bf16")),
)


IMAGE_FIXED = ("swin_t",)
"""Models whose windows shift and pad by the remainder of the image size: its symbolic form does not terminate."""


_ADAPTED = tuple(f"train+{p}{c}" for p in ("bf16", "amp-bf16") for c in ("", "+checkpoint"))
DECODER_VARIANTS = (
    *(
        f"{each}+{targets}+{bits}"
        for each in _ADAPTED
        for targets in ("lora", "lora-all")
        for bits in ("4bit", "8bit")
    ),
    *(f"{each}+lora-all" for each in (*_ADAPTED, "train+fp32", "train+fp32+checkpoint")),
    *(
        f"train+bf16{c}+{targets}{bits}+fp32-adapters"
        for c in ("", "+checkpoint")
        for targets in ("lora", "lora-all")
        for bits in ("", "+4bit", "+8bit")
    ),
    "infer+bf16+4bit",
    "infer+bf16+8bit",
)
"""How decoders are fine-tuned and served beside the ways all models have."""


def entries() -> dict[str, tuple[Any, dict[str, int], tuple[str, ...]]]:
    from lab import detection, diffusion, language, others, vision

    found: dict[str, tuple[Any, dict[str, int], tuple[str, ...]]] = {}
    for name, make in language.MODELS.items():
        found[name] = (build_language(make), {"batch": 6, "seq": 112}, LANGUAGE_VARIANTS)
    for name, (make_sized, pixels) in vision.MODELS.items():
        found[name] = (build_vision(make_sized, pixels), {"batch": 6, "image": pixels}, VISION_VARIANTS)
        if name in IMAGE_FIXED:
            found[name] = (found[name][0], {"batch": 6}, VISION_VARIANTS)
    for more in (others, detection, diffusion):
        found.update(more.MODELS)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", "--out", type=Path, default=Path("src/teraflock/workload/data/traces"))
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--missing", action="store_true", help="skip traces that exist")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    options.out.mkdir(parents=True, exist_ok=True)
    known = entries()
    asked = [(name, text) for text in LANGUAGE_VARIANTS for name in options.names or known]
    for name, text in asked:
        build, hints, variants = known[name]
        if text in (options.variant or variants) and text in variants:
            path = options.out / f"{name}+{text}.trace"
            if options.missing and path.exists():
                continue
            start = time.perf_counter()
            try:
                with transformers_recorded():
                    data = write_trace(record(name, Variant(text), build, hints))
            except Exception as error:  # an entry that fails must not affect the others
                print(f"{name} {text}: FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)
                continue
            path.write_bytes(data)
            print(f"{name} {text}: {len(data):,} bytes, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
