"""Small habits of scripts, each of which was once traced wrongly. Needs PyTorch; `make corpus` has it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: `make corpus` runs these")

from tests.corpus.forked import forked, traced

HEAD = """import torch, torch.nn.functional as F
from torch import nn
"""
LOOP = """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    loss = step()
    loss.backward()
    opt.step()
"""


def test_a_device_named_by_keyword_moves_the_model(tmp_path: Path) -> None:
    seen = traced(
        HEAD + "net = nn.Conv2d(3, 8, 3).to(device='cuda', memory_format=torch.channels_last)\n"
        "assert next(net.parameters()).is_cuda\n"
        "step = lambda: net(torch.randn(2, 3, 8, 8, device='cuda')).sum()" + LOOP,
        tmp_path,
    )
    assert seen["notes"] == []


def test_a_check_for_nan_does_not_end_the_script(tmp_path: Path) -> None:
    seen = traced(
        HEAD + "net = nn.Linear(4, 4).cuda()\n"
        "def step():\n"
        "    loss = net(torch.randn(2, 4, device='cuda')).sum()\n"
        "    value = loss.item()\n"
        "    if value != value or not value == value: raise SystemExit(1)\n"
        "    return loss" + LOOP,
        tmp_path,
    )
    assert seen["samples_per_step"] == 2


@pytest.mark.parametrize(
    "step",
    [
        "x = torch.randn(8, 4, pin_memory=True).to('cuda'); return net(x).sum()",
        "with torch.autocast('cuda'): x = net(torch.randn(8, 4, device='cuda')); return torch.dot(x[0], x[1].float())",
        "return F.ctc_loss(net(torch.randn(6, 2, 4, device='cuda')).log_softmax(-1),"
        " torch.ones(2, 3, dtype=torch.long, device='cuda'), [6, 5], [3, 2])",
    ],
    ids=["pinned when created", "products of two types", "lengths as lists"],
)
def test_a_step_is_traced(step: str, tmp_path: Path) -> None:
    seen = traced(HEAD + f"net = nn.Linear(4, 4).cuda()\ndef step():\n    {step}" + LOOP, tmp_path)
    assert (seen["forward_passes"], seen["backward_passes"]) == (1, 1)


def test_samples_of_a_loader_with_time_first_are_its_batch(tmp_path: Path) -> None:
    seen = traced(
        HEAD + "from torch.nn.utils.rnn import pad_sequence\n"
        "data = [torch.randn(5 + i % 3, 4) for i in range(64)]\n"
        "net = nn.Linear(4, 4).cuda(); opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for x in torch.utils.data.DataLoader(data, batch_size=16, collate_fn=pad_sequence):\n"
        "    opt.zero_grad(); net(x.cuda()).sum().backward(); opt.step()\n",
        tmp_path,
    )
    assert seen["samples_per_step"] == 16


def test_an_optimizer_with_a_closure_does_not_stop_because_the_loss_is_unknown(tmp_path: Path) -> None:
    seen = traced(
        HEAD + "net = nn.Linear(4, 4).cuda(); opt = torch.optim.LBFGS(net.parameters(), max_iter=7)\n"
        "x = torch.randn(2, 4, device='cuda')\n"
        "def closure():\n    opt.zero_grad(); loss = net(x).pow(2).sum(); loss.backward(); return loss\n"
        "for _ in range(4): opt.step(closure)\n",
        tmp_path,
    )
    assert seen["backward_passes"] == 7


def test_a_closure_that_is_called_once_is_nothing_to_note(tmp_path: Path) -> None:
    seen = traced(
        HEAD + "net = nn.Linear(4, 4).cuda(); opt = torch.optim.Adam(net.parameters())\n"
        "def closure():\n"
        "    opt.zero_grad(); loss = net(torch.randn(2, 4, device='cuda')).sum(); loss.backward(); return loss\n"
        "for _ in range(4): opt.step(closure)\n",
        tmp_path,
    )
    assert (seen["samples_per_step"], seen["notes"]) == (2, [])


WEIGHTS = "import torch\nw = torch.randn(64, 8, device='cuda', requires_grad=True)\n"
BY_HAND = "    with torch.no_grad(): w -= 0.1 * w.grad; w.grad = None\n"


@pytest.mark.parametrize(
    "text",
    [
        "for _ in range(9):\n    loss = (torch.randn(50, 64).cuda() @ w).sum(); loss.backward()\n" + BY_HAND,
        "opt = torch.optim.SGD([w], 0.1)\nfor _ in range(9):\n"
        "    loss = (torch.randn(50, 64).cuda() @ w).sum(); opt.zero_grad(); loss.backward(); opt.step()\n",
        "for x in torch.utils.data.DataLoader(torch.randn(500, 64), 50):\n"
        "    g, = torch.autograd.grad((x.cuda() @ w).sum(), [w])\n"
        "    with torch.no_grad(): w -= 0.1 * g\n",
    ],
    ids=["by hand", "optimizer", "gradients asked for"],
)
def test_a_loop_without_modules_has_parameters_and_samples(text: str, tmp_path: Path) -> None:
    """`--batch` cannot be asked for otherwise, and samples per second are missing."""
    seen = traced(WEIGHTS + text, tmp_path)
    assert sum(seen["parameters"].values()) == 64 * 8
    assert (seen["samples_per_step"], seen["backward_passes"]) == (50, 1)
    assert seen["input_shape"] == [50, 64]


def test_a_loop_that_puts_nothing_on_a_gpu_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WEIGHTS.replace(", device='cuda'", "") + "".join(
        f"loss = (torch.randn(50, 64) @ w).sum(); loss.backward()\n{BY_HAND[4:]}" for _ in range(4)))  # fmt: skip
    assert "no PyTorch operation on a GPU" in refusal(tmp_path / "train.py", tmp_path)


def test_a_model_on_two_gpus_is_noted(tmp_path: Path) -> None:
    seen = traced(
        HEAD + "net = nn.ModuleList([nn.Linear(4, 4).to('cuda:0'), nn.Linear(4, 4).to('cuda:1')])\n"
        "step = lambda: net[1](net[0](torch.randn(2, 4, device='cuda:0')).to('cuda:1')).sum()" + LOOP,
        tmp_path,
    )
    assert seen["notes"] == ["What the script puts on several GPUs counts as on one"]


@pytest.mark.parametrize("code", [0, 3])
def test_a_script_that_ends_its_process_does_not_end_the_tracer(code: int, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import os, torch\nnet = torch.nn.Linear(4, 4)\nos._exit({code})\n")
    said = refusal(script, tmp_path)
    assert ("no PyTorch operation" if code == 0 else "exit code 3") in said


def refusal(script: Path, folder: Path) -> str:
    def work() -> Any:
        from teraflock.base.errors import BadInput
        from teraflock.workload.tracing.script import trace_script

        with pytest.raises(BadInput) as refused:
            trace_script(script)
        return refused.value.sentence

    return str(forked(work, folder))


@pytest.mark.parametrize(
    "first", ["net.eval()\n    with torch.no_grad(): net(many)\n    net.train()", "pass"]
)
def test_the_input_is_that_of_training(first: str, tmp_path: Path) -> None:
    """Not of an evaluation, or of acting, before it."""
    seen = traced(
        HEAD + "net = nn.Linear(4, 4).cuda()\nmany = torch.randn(99, 4, device='cuda')\n"
        f"def step():\n    {first}\n    with torch.no_grad(): net(many[:1])\n"
        "    return net(torch.randn(6, 4, device='cuda')).sum()" + LOOP,
        tmp_path,
    )
    assert seen["input_shape"] == [6, 4]


@pytest.mark.parametrize(
    "use",
    [
        "torch.cuda.nvtx.range_push('step'); torch.cuda.nvtx.range_pop(); torch.cuda.profiler.start()",
        "torch.cuda.memory_stats()['allocated_bytes.all.peak'] / 2**30",
        "torch.cuda.memory._record_memory_history(); torch.cuda.memory._dump_snapshot('x.pickle')",
        "assert int(torch.version.cuda.split('.')[0]) > 11 and torch.backends.cudnn.version() > 8000",
        "g = torch.Generator('cuda').manual_seed(1); torch.randn(3, generator=g, device='cuda');"
        " assert g.device.type == 'cuda' and isinstance(torch.default_generator, torch.Generator)",
        "y = net(torch.randn(2, 4, device='cuda')); assert torch.allclose(y, y) and not torch.equal(y, y)",
    ],
    ids=["ranges", "statistics", "snapshots", "versions", "generator", "checks"],
)
def test_what_scripts_ask_of_cuda_has_an_answer(use: str, tmp_path: Path) -> None:
    seen = traced(
        HEAD + f"net = nn.Linear(4, 4).cuda()\n{use}\n"
        "step = lambda: net(torch.randn(2, 4, device='cuda')).sum()" + LOOP,
        tmp_path,
    )
    assert seen["samples_per_step"] == 2


PACKAGE = {"__init__.py": "", "size.py": "WIDTH = 5", "__main__.py": "from . import train"}


@pytest.mark.parametrize("module", ["job", "job.train"])
def test_a_module_of_a_package_runs_as_with_python_m(module: str, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    train = HEAD + "from .size import WIDTH\nnet = nn.Linear(WIDTH, 4).cuda()\n"
    train += "step = lambda: net(torch.randn(2, WIDTH, device='cuda')).sum()" + LOOP
    for name, text in {**PACKAGE, "train.py": train}.items():
        (tmp_path / "job" / name).write_text(text)

    def work() -> Any:
        from teraflock.workload.tracing.script import trace_script

        trace = trace_script(tmp_path, module=module)
        return [trace.name, trace.samples]

    assert forked(work, tmp_path) == [module.rpartition(".")[2], 2]
    assert "tera trace -m package.module" in refusal(tmp_path / "job" / "train.py", tmp_path)


@pytest.mark.parametrize(
    "ends",
    [
        "(token == 3).all()",
        "((token != 3).long().max() == 0)",
        "(ended := ended | (token == 3)).all()",
        "ended.logical_or_(token == 3).all()",
    ],
)
def test_generated_text_is_not_ended_by_an_unknown_token(ends: str, tmp_path: Path) -> None:
    seen = traced(
        HEAD + "net = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9)).cuda().eval()\n"
        "with torch.no_grad():\n"
        "    for _ in range(3):\n"
        "        token = torch.zeros(2, 5, dtype=torch.long, device='cuda')\n"
        "        ended = torch.zeros(2, 1, dtype=torch.bool, device='cuda')\n"
        "        for _ in range(4):\n"
        "            token = net(token)[:, -1:].argmax(-1)\n"
        f"            if {ends}: break\n",
        tmp_path,
    )
    assert seen["forward_passes"] == 4


def test_generated_text_ends_at_its_full_length(tmp_path: Path) -> None:
    """As transformers decides it: a text is finished if it is long enough, or else by its last token."""
    seen = traced(
        HEAD + "net = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9)).cuda().eval()\n"
        "with torch.no_grad():\n"
        "    for _ in range(3):\n"
        "        token = torch.zeros(2, 5, dtype=torch.long, device='cuda')\n"
        "        unfinished, length = torch.ones(2, dtype=torch.long, device='cuda'), 0\n"
        "        while length < 99:\n"
        "            token, length = net(token)[:, -1:].argmax(-1), length + 1\n"
        "            done = torch.full((2,), length >= 5, device='cuda') | torch.isin(token[:, -1], 3)\n"
        "            unfinished = unfinished & ~done\n"
        "            if unfinished.max() == 0: break\n",
        tmp_path,
    )
    assert seen["forward_passes"] == 5


def test_an_inference_script_without_end_is_stopped(tmp_path: Path) -> None:
    seen = traced(
        HEAD + "net = nn.Linear(4, 4).cuda().eval()\n"
        "with torch.inference_mode():\n"
        "    while True: net(torch.randn(8, 4, device='cuda'))\n",
        tmp_path,
    )
    assert (seen["samples_per_step"], seen["forward_passes"]) == (8, 1)


def test_a_root_mean_square_norm_is_one_kernel(tmp_path: Path) -> None:
    import torch

    if not hasattr(torch.ops.aten, "_fused_rms_norm"):
        pytest.skip("this version of PyTorch has no such kernel")
    script = tmp_path / "train.py"
    script.write_text(
        HEAD + "net = nn.RMSNorm(64).cuda()\n"
        "step = lambda: net(torch.randn(8, 64, device='cuda')).sum()" + LOOP
    )

    def work() -> Any:
        from teraflock.workload.tracing.script import trace_script

        return Counter(each.name for each in trace_script(script).operations)

    found = forked(work, tmp_path)
    assert found["native_layer_norm"] == found["native_layer_norm_backward"] == 1
    assert "rsqrt" not in found


def test_two_detachings_in_a_row_count_as_one_view(tmp_path: Path) -> None:
    """PyTorch 2.4 detaches each gradient twice, newer versions once."""
    loop = LOOP.replace("opt.step()", "[p.grad{} for p in net.parameters()]; opt.step()")
    text = HEAD + "net = nn.Linear(4, 4).cuda()\nstep = lambda: net(torch.randn(2, 4, device='cuda')).sum()"

    def views(more: str) -> Any:
        (tmp_path / "train.py").write_text(text + loop.format(more))

        def work() -> Any:
            from teraflock.workload.tracing.script import trace_script

            return trace_script(tmp_path / "train.py").views

        return forked(work, tmp_path)

    assert views(".detach()") == views(".detach().detach()") > views("")


def test_a_library_that_cannot_be_imported_is_an_error_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "transformers").mkdir()
    (tmp_path / "transformers" / "__init__.py").write_text("import no_such_package")
    script = tmp_path / "train.py"
    script.write_text("import transformers")

    def work() -> Any:
        import sys

        from teraflock.base.errors import BadInput
        from teraflock.workload.tracing.script import trace_script

        for name in [each for each in sys.modules if each.partition(".")[0] == "transformers"]:
            del sys.modules[name]  # other tests import the real one
        sys.path.insert(0, str(tmp_path))
        with pytest.raises(BadInput) as refused:
            trace_script(script)
        return refused.value.sentence

    assert "a package is not installed" in forked(work, tmp_path)


def operations_of(text: str, folder: Path) -> list[tuple[str, list[bool]]]:
    """Name of each distinct operation, and whether each of its inputs is contiguous."""
    (folder / "train.py").write_text(text)

    def work() -> Any:
        from teraflock.workload.tracing.script import trace_script

        trace = trace_script(folder / "train.py")
        return [(each.name, [bool(one.contiguous) for one in each.inputs]) for each in trace.operations]

    return [(name, flags) for name, flags in forked(work, folder)]


def runs_of(name: str, text: str, folder: Path) -> Any:
    """How often an operation runs in the step that was found."""
    (folder / "train.py").write_text(text)

    def work() -> Any:
        from teraflock.workload.trace import EVENT_KINDS, EventKind, Mark
        from teraflock.workload.tracing.script import trace_script

        trace = trace_script(folder / "train.py")
        step = trace.events[trace.events.index(Mark.STEP * EVENT_KINDS + EventKind.MARK) :]
        ran = (event // EVENT_KINDS for event in step if event % EVENT_KINDS == EventKind.OPERATE)
        return sum(trace.operations[each].name == name for each in ran)

    return forked(work, folder)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (".to(memory_format=torch.channels_last).cuda()", ".cuda().to(memory_format=torch.channels_last)"),
        (
            ".cuda().to(memory_format=torch.channels_last)",
            ".to(device='cuda', memory_format=torch.channels_last)",
        ),
    ],
)
def test_the_channels_last_layout_is_kept(model: str, data: str, tmp_path: Path) -> None:
    """Also by operations between convolutions that have a form of their own here."""
    layers = "nn.Conv2d(8, 8, 3), nn.Upsample(scale_factor=2), nn.ZeroPad2d(1), nn.Conv2d(8, 8, 3)"
    net = f"net = nn.Sequential({layers}){model}\n"
    found = operations_of(
        HEAD + net + f"step = lambda: net(torch.randn(2, 8, 8, 8){data}).sum()" + LOOP, tmp_path
    )
    convolutions = [flags[:2] for name, flags in found if name == "convolution"]
    assert convolutions
    assert not any(any(flags) for flags in convolutions)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("precision", ["", "with torch.autocast('cuda', torch.bfloat16): "])
def test_a_recurrent_layer_is_one_operation_of_cudnn(kind: str, precision: str, tmp_path: Path) -> None:
    found = operations_of(
        HEAD + f"net = nn.{kind}(4, 8, 2, bidirectional=True, batch_first=True).cuda()\n"
        f"def step():\n    {precision}return net(torch.randn(2, 5, 4, device='cuda'))[0].float().sum()"
        + LOOP,
        tmp_path,
    )
    names = [name for name, _ in found]
    assert {"_cudnn_rnn", "_cudnn_rnn_backward"} <= set(names)
    assert not {"tanh", "sigmoid"} & set(names)


def test_a_cell_is_two_products_and_a_fused_kernel(tmp_path: Path) -> None:
    for kind, index in (("LSTM", "[0]"), ("GRU", "")):
        found = operations_of(
            HEAD + f"net = nn.{kind}Cell(4, 8).cuda()\n"
            f"step = lambda: net(torch.randn(2, 4, device='cuda')){index}.sum()" + LOOP,
            tmp_path,
        )
        assert f"_thnn_fused_{kind.lower()}_cell" in {name for name, _ in found}
        assert "sigmoid" not in {name for name, _ in found}


@pytest.mark.parametrize("learned", [True, False])
def test_attention_with_a_learned_bias_in_16_bits_is_not_fused(learned: bool, tmp_path: Path) -> None:
    """As an H200 ran T5 under autocast."""
    bias = "net.weight" if learned else "net.weight.detach()"
    found = operations_of(
        HEAD + "net = nn.Linear(16, 16).cuda()\n"
        "def step():\n"
        "    x = torch.randn(2, 1, 16, 8, device='cuda', requires_grad=True)\n"
        "    with torch.autocast('cuda', torch.bfloat16):\n"
        f"        y = F.scaled_dot_product_attention(x, x, x, {bias}[None, None])\n"
        "    return y.float().sum() + net.bias.sum()" + LOOP,
        tmp_path,
    )
    assert any("dot_product" in name for name, _ in found) is not learned


def test_a_table_in_host_memory_with_sparse_gradients_stays_there(tmp_path: Path) -> None:
    found = operations_of(
        HEAD + "table, net = nn.EmbeddingBag(1000, 8, sparse=True), nn.Linear(8, 4).cuda()\n"
        "other = torch.optim.SGD(table.parameters(), lr=0.1)\n"
        "def step():\n"
        "    other.step(); other.zero_grad()\n"
        "    return net(table(torch.randint(0, 1000, (4, 2))).cuda()).sum()" + LOOP,
        tmp_path,
    )
    assert "_embedding_bag" not in {name for name, _ in found}


def test_layers_without_sizes_get_them_from_a_batch_on_the_host(tmp_path: Path) -> None:
    seen = traced(
        HEAD + "net = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(4))\nnet(torch.zeros(1, 16))\n"
        "net.cuda()\nstep = lambda: net(torch.randn(2, 16, device='cuda')).sum()" + LOOP,
        tmp_path,
    )
    assert sum(seen["parameters"].values()) == 16 * 8 + 8 + 8 * 4 + 4
    assert seen["samples_per_step"] == 2


FUNC = HEAD + "from torch.func import functional_call, grad, stack_module_state, vmap\n"
STACKED = """
from copy import deepcopy
models = [nn.Linear(4, 3).cuda() for _ in range(5)]
params, buffers = stack_module_state(models)
base = deepcopy(models[0]).to("meta")
one = lambda p, b, x: functional_call(base, (p, b), (x,))
step = lambda: vmap(one, in_dims=(0, 0, None))(params, buffers, torch.randn(6, 4, device="cuda")).sum()
class net:
    parameters = params.values
"""
INNER = """
net = nn.Linear(4, 3).cuda()
lost = lambda p, x: functional_call(net, p, (x,)).pow(2).mean()
def task(p, x, y):
    found = grad(lost)(p, x)
    return lost({name: each - 0.1 * found[name] for name, each in p.items()}, y)
def step():
    x, y = torch.randn(6, 2, 4, device="cuda"), torch.randn(6, 9, 4, device="cuda")
    return vmap(task, in_dims=(None, 0, 0))(dict(net.named_parameters()), x, y).mean()
"""


@pytest.mark.parametrize(("step", "parameters"), [(STACKED, 5 * 15), (INNER, 15)], ids=["stacked", "inner"])
def test_functional_transforms_are_traced(step: str, parameters: int, tmp_path: Path) -> None:
    """The samples are those of the whole batch, and a model on the meta device holds no parameters."""
    seen = traced(FUNC + step + LOOP, tmp_path)
    assert (seen["task"], seen["samples_per_step"], seen["backward_passes"]) == ("train", 6, 1)
    assert sum(seen["parameters"].values()) == parameters


@pytest.mark.parametrize(
    "update",
    [
        "found = torch.autograd.grad(F.mse_loss(net(x), y), [*net.parameters()])\n"
        "    for p, g in zip(net.parameters(), found): p.data -= 0.1 * g",
        "g = vmap(grad(lost), in_dims=(None, 0, 0))(dict(net.named_parameters()), x, y)\n"
        "    for n, p in net.named_parameters(): p.grad = g[n].mean(0)\n"
        "    opt.step()",
    ],
    ids=["by hand", "for each sample"],
)
def test_gradients_without_a_backward_pass_are_training(update: str, tmp_path: Path) -> None:
    seen = traced(
        FUNC
        + "net = nn.Linear(4, 3).cuda()\n"
        + ("opt = torch.optim.SGD(net.parameters(), lr=0.1)\n" if "opt." in update else "")
        + "lost = lambda p, x, y: F.mse_loss(functional_call(net, p, (x,)), y)\n"
        "for _ in range(5):\n"
        "    x, y = torch.randn(6, 4, device='cuda'), torch.randn(6, 3, device='cuda')\n"
        f"    {update}\n",
        tmp_path,
    )
    assert (seen["task"], seen["samples_per_step"], seen["backward_passes"]) == ("train", 6, 1)


def test_the_gradients_of_a_penalty_are_no_backward_pass_of_their_own(tmp_path: Path) -> None:
    seen = traced(
        HEAD + "net = nn.Linear(4, 3).cuda()\n"
        "def step():\n"
        "    loss = net(torch.randn(6, 4, device='cuda')).pow(2).mean()\n"
        "    found = torch.autograd.grad(loss, net.parameters(), create_graph=True)\n"
        "    return loss + sum(each.pow(2).sum() for each in found)" + LOOP,
        tmp_path,
    )
    assert (seen["samples_per_step"], seen["backward_passes"]) == (6, 1)


@pytest.mark.parametrize(
    "picked", ["x.max(0)[0]", "x[at]", "x.index_select(0, at)", "x.gather(0, at[:, None])"]
)
@pytest.mark.parametrize("twice", [False, True])
def test_gradients_of_selected_numbers_fill_zeros_in_place(picked: str, twice: bool, tmp_path: Path) -> None:
    """As PyTorch does without a mode; gradients of gradients need the zeros."""
    found = operations_of(
        HEAD + "net = nn.Linear(8, 8).cuda()\nat = torch.tensor([0, 3, 3]).cuda()\n"
        "def step():\n"
        f"    x = net(torch.randn(4, 8, device='cuda'))\n    loss = {picked}.pow(2).sum()\n"
        f"    return torch.autograd.grad(loss, x, create_graph=True)[0].sum() if {twice} else loss" + LOOP,
        tmp_path,
    )
    names = {name.partition(".")[0] for name, _ in found}
    out_of_place = {"scatter", "scatter_add", "index_put", "index_add"} & names
    assert bool(out_of_place) is twice


def test_inference_mode_computes_as_without_gradients(tmp_path: Path) -> None:
    """There composite operations such as `linear` reach a mode whole: they had no time and no workspace."""
    body = (
        HEAD
        + "net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LayerNorm(288),"
        " nn.Linear(288, 16))"
        ".cuda().eval()\n"
        "layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).cuda().eval()\n"
        "with torch.MODE():\n"
        "    for _ in range(4):\n"
        "        x = F.interpolate(torch.randn(4, 3, 5, 5, device='cuda'), (8, 8), mode='bilinear')\n"
        "        y = layer(net(x)[:, None]).softmax(-1)\n"
        "        shown = f'{(y[0] @ y[0].T).std().item():.3f}'\n"
    )
    plain, inference = (
        operations_of(body.replace("MODE", mode), tmp_path) for mode in ("no_grad", "inference_mode")
    )
    assert inference == plain
    assert "addmm" in {name for name, _ in plain}


ROLLOUT = """
import numpy as np
from torch.distributions import Categorical
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).cuda()
def step():
    seen, losses = np.random.randn(16, 4).astype(np.float32), []
    for _ in range(5):
        choice = Categorical(logits=net(torch.from_numpy(seen).cuda()))
        action = choice.sample()
        losses.append(choice.log_prob(action))
        seen = seen + action.cpu().numpy()[:, None].astype(np.float32)
    return torch.stack(losses).mean()
"""


def test_a_rollout_has_the_samples_of_all_its_steps(tmp_path: Path) -> None:
    seen = traced(HEAD + ROLLOUT + LOOP, tmp_path)
    assert (seen["samples_per_step"], seen["forward_passes"]) == (80, 5)
    assert seen["notes"] == []  # also not of the values that a distribution checks


def test_two_views_are_one_batch_also_if_the_model_reads_values(tmp_path: Path) -> None:
    seen = traced(
        HEAD + "class Net(nn.Linear):\n"
        "    def forward(self, x):\n"
        "        assert x.isfinite().all().item()\n"
        "        return super().forward(x)\n"
        "net = Net(4, 4).cuda()\n"
        "def step():\n"
        "    x = torch.randn(16, 4, device='cuda')\n"
        "    return net(x).sum() + net(-x).sum()" + LOOP,
        tmp_path,
    )
    assert seen["samples_per_step"] == 16


def test_a_teacher_needs_no_optimizer(tmp_path: Path) -> None:
    """It computes without gradients, though nobody froze its weights. A forgotten part of the model is noted."""
    text = (
        HEAD + "teacher, net, more = (nn.Linear(4, 4).cuda() for _ in range(3))\n"
        "def step():\n"
        "    x = torch.randn(2, 4, device='cuda')\n"
        "    with torch.no_grad(): y = teacher(x)\n"
        "    return F.mse_loss(net(x), y) + MORE" + LOOP
    )
    assert traced(text.replace("MORE", "0"), tmp_path)["notes"] == []
    forgotten = traced(text.replace("MORE", "more(x).sum()"), tmp_path)["notes"]
    assert forgotten == ["20 trainable parameters of the model are not in any optimizer"]


@pytest.mark.parametrize(
    "use", ["torch.zeros(n)", "torch.ones(5)[n]", "torch.ones(4).view(n, -1)", "range(n)"]
)
def test_an_unknown_value_as_a_size_is_refused_in_words(use: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"import torch\nn = torch.ones(1).cuda().item()\n{use}\n")

    def work() -> Any:
        from teraflock.base.errors import BadInput
        from teraflock.workload.tracing.script import trace_script

        with pytest.raises(BadInput) as refused:
            trace_script(tmp_path / "train.py")
        return refused.value.sentence

    found = forked(work, tmp_path)
    assert "line 3" in found
    assert "a value that only a GPU would compute is used as a size" in found


ROUTED = """
gate = nn.Linear(4, 4).cuda()
experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(4)).cuda()
net = nn.ModuleList([gate, experts])
def step():
    x = torch.randn(32, 4, device="cuda")
    weight, chosen = gate(x).softmax(-1).topk(2, dim=-1)
    out = torch.zeros_like(x)
    for i, expert in enumerate(experts):
        row, which = torch.where(chosen == i)
        assert len(row) == 16
        out = out.index_add(0, row, expert(x[row]) * weight[row, which, None])
    return out.sum()
"""


def test_every_expert_gets_as_many_tokens(tmp_path: Path) -> None:
    seen = traced(HEAD + ROUTED + LOOP, tmp_path)
    assert any("counts as taken equally often" in each for each in seen["notes"])


def test_a_frozen_teacher_costs_as_much_in_every_step(tmp_path: Path) -> None:
    """The third forward pass without gradients is not computed again, but recorded again."""
    body = (
        "net = nn.Linear(8, 8).cuda(); teacher = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()\n"
        "def step():\n"
        "    loss = 0\n"
        "    for _ in range(CALLS):\n"
        "        with torch.no_grad(): y = teacher(torch.randn(4, 8, device='cuda'))\n"
        "        loss = loss + F.mse_loss(net(torch.randn(4, 8, device='cuda')), y)\n"
        "    return loss" + LOOP
    )
    assert [runs_of("relu", HEAD + body.replace("CALLS", str(calls)), tmp_path) for calls in (1, 3)] == [1, 3]


@pytest.mark.parametrize(("dropout", "numbers"), [(0.0, 5 + 1 + 5), (0.5, 5 + 2.25 + 5)])
def test_a_recurrent_layer_keeps_what_was_measured(dropout: float, numbers: float, tmp_path: Path) -> None:
    """Per number of its output, as an H200 keeps for two layers of an LSTM."""
    script = tmp_path / "train.py"
    script.write_text(
        HEAD + f"net = nn.LSTM(64, 64, 2, dropout={dropout}).cuda()\n"
        "step = lambda: net(torch.randn(100, 32, 64, device='cuda'))[0].sum()" + LOOP
    )

    def work() -> Any:
        from teraflock.workload.tracing.script import trace_script

        trace = trace_script(script)
        made = next(each for each in trace.operations if each.name == "_cudnn_rnn")
        return trace.expressions[made.outputs[3].shape[0]]

    assert forked(work, tmp_path) == numbers * 4 * 100 * 32 * 64
