"""Recurrent layers as CUDA runs them: one call of cuDNN for all times and layers, and fused cells.

A CPU build runs many small operations instead. These functions call CUDA's operators, and `SHAPES` has what they
return.
"""

from collections.abc import Callable
from typing import Any, Final

import torch

MODES: Final = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}
"""The layers that cuDNN computes, with its numbers for them."""
LSTM: Final = 2
CELLS: Final = frozenset({"lstm_cell", "gru_cell"})
"""The cells that have a fused kernel."""
FORWARD_ARGUMENTS: Final = 16
TENSORS_EACH: Final = {True: 4, False: 2}
"""Parameters of a layer in one direction, with and without biases."""


def layer(name: str, func: Any, args: Any) -> Any:
    """`torch.lstm` and the like. Layers with projections run as on the CPU."""
    is_packed = not isinstance(args[3], bool)
    data, sizes, hx, weights, has_biases, layers, dropout, train, bidirectional = (
        args if is_packed else (args[0], None, *args[1:8])
    )
    each = TENSORS_EACH[has_biases]
    if len(weights) != layers * (1 + bidirectional) * each:
        return func(*args)
    mode = MODES[name]
    hidden, cell = hx if mode == LSTM else (hx, None)
    out = torch.ops.aten._cudnn_rnn(
        data, weights, each, None, hidden, cell, mode, hidden.shape[-1], 0, layers,
        not is_packed and args[8], dropout, train, bidirectional,
        [int(size) for size in sizes.tolist()] if sizes is not None else [], None,
    )  # fmt: skip
    return out[:3] if mode == LSTM else out[:2]


def cell(name: str, data: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    hidden = hx[0] if name == "lstm_cell" else hx
    gates = torch.nn.functional.linear(data, w_ih), torch.nn.functional.linear(hidden, w_hh)
    if name == "lstm_cell":
        return torch.ops.aten._thnn_fused_lstm_cell(*gates, hx[1], b_ih, b_hh)[:2]
    return torch.ops.aten._thnn_fused_gru_cell(*gates, hx, b_ih, b_hh)[0]


def attributes(args: Any) -> list[int]:
    """Mode, hidden size, layers, directions and times of a call of cuDNN."""
    at = 6 if len(args) == FORWARD_ARGUMENTS else 10
    kind, hidden, _, layers, batch_first, _, _, bidirectional, sizes = args[at : at + 9]
    times = len(sizes) or args[0].shape[1 if batch_first else 0]
    return [kind, int(hidden), layers, 1 + bidirectional, int(times)]


def _layer(data: Any, weights: Any, each: int, buffer: Any, hx: Any, cx: Any, mode: int, *rest: Any) -> Any:
    hidden, _, layers, _, dropout, train, bidirectional, _, _ = rest
    out = data.new_empty([*data.shape[:-1], hidden * (1 + bidirectional)])
    cells = cx.new_empty(cx.shape) if cx is not None else data.new_empty([0])
    rows = out.numel() // out.shape[-1]
    each = kept_bytes(mode, layers, data.element_size(), is_dropped=dropout > 0) if train else 0
    reserve = data.new_empty([each * rows * out.shape[-1]], dtype=torch.uint8)
    return out, hx.new_empty(hx.shape), cells, reserve, data.new_empty([0])


def kept_bytes(mode: int, layers: int, size: int, *, is_dropped: bool) -> int:
    """Bytes that cuDNN keeps for the backward pass, per number of one layer's output: so many numbers of `size` bytes
    for each layer, and what passes from one to the next, twice and as a mask with dropout. Measured on an H200."""
    numbers = layers * {0: 1, 1: 1, 2: 5, 3: 6}[mode]
    return size * numbers + (layers - 1) * (2 * size + 1 if is_dropped else size)


def _layer_back(data: Any, weights: Any, each: int, buffer: Any, hx: Any, cx: Any, *rest: Any) -> Any:
    cells = cx.new_empty(cx.shape) if cx is not None else data.new_empty([0])
    made = [weight.new_empty(weight.shape) for weight in weights]
    return data.new_empty(data.shape), hx.new_empty(hx.shape), cells, made


def _lstm_cell(gates: Any, hidden_gates: Any, cx: Any, *biases: Any) -> Any:
    return cx.new_empty(cx.shape), cx.new_empty(cx.shape), gates.new_empty(gates.shape)


def _lstm_cell_back(grad: Any, grad_cell: Any, cx: Any, cy: Any, workspace: Any, has_bias: bool) -> Any:
    bias = workspace.new_empty(workspace.shape[-1:]) if has_bias else None
    return workspace.new_empty(workspace.shape), cx.new_empty(cx.shape), bias


def _gru_cell(gates: Any, hidden_gates: Any, hx: Any, *biases: Any) -> Any:
    return hx.new_empty(hx.shape), hx.new_empty([hx.shape[0], 5 * hx.shape[1]])


def _gru_cell_back(grad: Any, workspace: Any, has_bias: bool) -> Any:
    rows, width = grad.shape
    bias = [grad.new_empty([3 * width]) if has_bias else None for _ in range(2)]
    return (
        grad.new_empty([rows, 3 * width]),
        grad.new_empty([rows, 3 * width]),
        grad.new_empty(grad.shape),
        *bias,
    )


SHAPES: dict[str, Callable[..., Any]] = {
    "aten::_cudnn_rnn": _layer,
    "aten::_cudnn_rnn_backward": _layer_back,
    "aten::_thnn_fused_lstm_cell": _lstm_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_cell_back,
    "aten::_thnn_fused_gru_cell": _gru_cell,
    "aten::_thnn_fused_gru_cell_backward": _gru_cell_back,
}
