"""Measures how people train large models on small cards.

LoRA over weights in 4 or 8 bits, 8-bit and paged optimizers, and FP8 products under `torch.compile`. A case is a JSON
line with model, batch, seq, optimizer, and `load_in`, `lora` or `fp8`. `lab/measure_compiled.py` runs them:
`python -m lab.measure_compiled CASES OUT --worker lab.measure_quantized`. Needs PyTorch with CUDA, transformers,
bitsandbytes, and torchao for FP8. No weights: models come from their configs.
"""

from pathlib import Path
from typing import Any

import torch

from lab.measure_compiled import allocations, timed
from lab.measure_configs import made

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class Adapted(torch.nn.Module):
    """A linear layer with a LoRA beside it, as peft adds it: both factors in float32, the second one zero, no dropout.
    In `judge_quantized` the second one was drawn as well, so it added to what the layers return."""

    def __init__(self, inner: Any, rank: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.inner = inner
        self.down = torch.nn.Linear(inputs, rank, bias=False, device="cuda")
        self.up = torch.nn.Linear(rank, outputs, bias=False, device="cuda")
        torch.nn.init.zeros_(self.up.weight)

    def forward(self, x: Any) -> Any:
        out = self.inner(x)
        side = self.up(self.down(x.to(self.down.weight.dtype))) * 2.0
        return out + side.to(out.dtype)


def quantized(layer: Any, load_in: str) -> Any:
    import bitsandbytes as bnb

    outputs, inputs = layer.weight.shape
    if load_in == "4bit":
        new = bnb.nn.Linear4bit(inputs, outputs, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4")
        new.weight = bnb.nn.Params4bit(
            layer.weight.data.cpu(), requires_grad=False, quant_type="nf4", compress_statistics=True
        )
    else:
        new = bnb.nn.Linear8bitLt(inputs, outputs, bias=False, has_fp16_weights=False, threshold=6.0)
        new.weight = bnb.nn.Int8Params(
            layer.weight.data.cpu().half(), requires_grad=False, has_fp16_weights=False
        )
    if layer.bias is not None:
        new.bias = torch.nn.Parameter(layer.bias.data, requires_grad=False)
    return new.cuda()


def prepared(net: Any, case: dict[str, Any]) -> Any:
    """Freeze the model, and replace its projections by quantized ones with a LoRA each."""
    for each in net.parameters():
        each.requires_grad_(False)
    for module in list(net.modules()):
        for name in TARGETS:
            layer = getattr(module, name, None)
            if isinstance(layer, torch.nn.Linear):
                outputs, inputs = layer.weight.shape
                inner = quantized(layer, case["load_in"]) if case.get("load_in") else layer
                setattr(module, name, Adapted(inner, case["lora"], inputs, outputs))
                del layer
    torch.cuda.empty_cache()
    return net


def optimizer(name: str, parameters: list[Any]) -> Any:
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=1e-5)
    import bitsandbytes as bnb

    kinds = {
        "adamw-8bit": bnb.optim.AdamW8bit,
        "paged-adamw": bnb.optim.PagedAdamW,
        "paged-adamw-8bit": bnb.optim.PagedAdamW8bit,
    }
    return kinds[name](parameters, lr=1e-5)


def measure(case: dict[str, Any], gate: Path) -> dict[str, Any]:
    torch.manual_seed(0)
    net = made(case["model"], torch.bfloat16).train()
    if case.get("lora"):
        net = prepared(net, case)
    if case.get("ckpt"):
        net.gradient_checkpointing_enable()
        net.enable_input_require_grads()
    if case.get("fp8"):
        from torchao.float8 import convert_to_float8_training

        convert_to_float8_training(net, module_filter_fn=lambda module, name: "lm_head" not in name)
    if case.get("compile"):
        net.compile()
    trained = optimizer(case["optimizer"], [each for each in net.parameters() if each.requires_grad])
    ids = torch.randint(5, 1000, (case["batch"], case["seq"]), device="cuda")

    def step() -> None:
        trained.zero_grad(set_to_none=True)
        net(input_ids=ids, labels=ids).loss.backward()
        trained.step()

    found = timed(step, gate)
    if case.get("events"):
        found["events"] = allocations(step)
    total = sum(each.numel() for each in net.parameters() if each.requires_grad)
    return {"case": case, **found, "trainable": total, "at_rest": torch.cuda.memory_allocated()}
