"""Measures the memory of cuDNN's recurrent layers: `python -m lab.measure_recurrent OUT`.

For each of the layers below: what a forward pass in training keeps for the backward pass beside its outputs
(`reserve`), and the most that each pass needs while it runs beside its inputs and what it returns (`forward`,
`backward`).
"""

import sys
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from lab.rows import append_line

LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn_tanh": nn.RNN}
TIMES_BATCH = ((70, 64), (168, 256), (20, 600), (600, 20))
INPUT_HIDDEN = ((96, 512), (650, 650), (8, 256))


def jobs() -> list[dict[str, Any]]:
    shapes = [
        {"kind": "lstm", "times": t, "batch": b, "input": i, "hidden": h, "layers": layers, "both": both}
        for (t, b), (i, h), layers, both in product(TIMES_BATCH, INPUT_HIDDEN, (1, 2, 3), (False, True))
    ]
    few = shapes[::5]
    more = [{**each, **change} for each in few for change in (
        {"kind": "gru"}, {"kind": "rnn_tanh"}, {"dropout": 0.3}, {"packed": True}, {"dtype": "float16"},
        {"kind": "gru", "dropout": 0.3}, {"kind": "gru", "dtype": "float16"},
    )]  # fmt: skip
    return shapes + more


def measure(job: dict[str, Any]) -> dict[str, Any]:
    dtype = getattr(torch, job.get("dtype", "float32"))
    layer = LAYERS[job["kind"]](
        job["input"], job["hidden"], job["layers"], dropout=job.get("dropout", 0.0), bidirectional=job["both"]
    ).to("cuda", dtype)
    data = torch.randn(job["times"], job["batch"], job["input"], device="cuda", dtype=dtype, requires_grad=True)
    given = pack_padded_sequence(data, torch.full((job["batch"],), job["times"])) if job.get("packed") else data
    found: dict[str, Any] = {"job": job}
    for _ in range(2):  # the first pass creates handles
        layer.zero_grad(set_to_none=True)
        data.grad = None
        before = fresh()
        out, state = layer(given)
        torch.cuda.synchronize()
        out = out.data if job.get("packed") else out
        kept = torch.cuda.memory_allocated() - before
        found["forward"] = torch.cuda.max_memory_allocated() - before - kept
        states = state if isinstance(state, tuple) else (state,)
        found["reserve"] = kept - sum(each.untyped_storage().nbytes() for each in (out, *states))
        gradient = torch.ones_like(out)
        before = fresh()
        out.backward(gradient)
        torch.cuda.synchronize()
        found["backward"] = torch.cuda.max_memory_allocated() - before
        found["after"] = torch.cuda.memory_allocated() - before
        del out, state, states
    return found


def fresh() -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


if __name__ == "__main__":
    for each in jobs():
        append_line(Path(sys.argv[1]), measure(each))
