"""LoRA in the zoo: frozen weights, and two small trained matrices for each query and value projection."""

from typing import Any

import torch

NAMES = ("q_proj", "v_proj", "query", "value", "q_lin", "v_lin", "q", "v", "c_attn")


class Lora(torch.nn.Module):
    def __init__(self, base: Any, rank: Any) -> None:
        super().__init__()
        self.base = base
        like = {"dtype": base.weight.dtype, "device": base.weight.device}
        wide, out = (
            (base.in_features, base.out_features) if hasattr(base, "in_features") else (base.nx, base.nf)
        )
        # Not initialised: initialisation takes the square root of the rank, which would fix that symbol.
        self.a = torch.nn.Parameter(torch.empty(rank, wide, **like))
        self.b = torch.nn.Parameter(torch.empty(out, rank, **like))

    def forward(self, x: Any) -> Any:
        linear = torch.nn.functional.linear
        return self.base(x) + linear(linear(x, self.a), self.b)


def add_lora(net: Any, rank: Any) -> None:
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    for module in list(net.modules()):
        for name in NAMES:
            child = getattr(module, name, None)
            if isinstance(child, torch.nn.Linear) or type(child).__name__ == "Conv1D":
                setattr(module, name, Lora(child, rank))
