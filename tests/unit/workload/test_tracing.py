"""`tera trace` on scripts as people write them. Needs PyTorch, which is no part of the test environment's lock."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from teraflock.workload.trace import EVENT_KINDS, EventKind

pytest.importorskip("torch", reason="PyTorch is not installed: install teraflock[trace] to run these")

LOOP = """
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-4)
for _ in range(3):
    x = torch.randn(32, 256, device="cuda")
    opt.zero_grad()
    {step}
    loss.backward()
    opt.step()
"""
PLAIN = "loss = net(x).pow(2).mean()"
AUTOCAST = "with torch.autocast('cuda', dtype=torch.bfloat16): loss = net(x).float().pow(2).mean()"
NET = """import torch
from torch import nn
net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256)).cuda()
"""
LORA = """
class Lora(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.a = base, nn.Linear(base.in_features, 8, bias=False)
        self.b = nn.Linear(8, base.out_features, bias=False)
    def forward(self, x):
        return self.base(x) + self.b(self.a(x))
for p in net.parameters():
    p.requires_grad_(False)
net[0] = Lora(net[0]).cuda()
"""
CHECKPOINTED = "loss = torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).pow(2).mean()"


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "teraflock", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize(
    "script",
    [
        NET + LOOP.format(step=PLAIN),
        NET + LOOP.format(step=AUTOCAST),
        NET + LORA + LOOP.format(step=PLAIN),
        "import torch.utils.checkpoint\n" + NET + LOOP.format(step=CHECKPOINTED),
    ],
    ids=["plain", "autocast", "lora", "checkpointing"],
)
def test_a_script_becomes_a_trace_that_can_be_estimated(script: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(script)
    traced = run(tmp_path, "trace", "train.py", "-o", "job.trace")
    assert traced.returncode == 0, traced.stderr
    estimated = run(tmp_path, "estimate", "job.trace", "--gpu", "H200", "--json")
    assert estimated.returncode == 0, estimated.stderr
    assert '"fits": true' in estimated.stdout


RESNET = """import sys
sys.path.insert(0, {root!r})
import torch
from lab.vision import MODELS
net = MODELS["resnet18"][0](224).cuda()
x, y = torch.randn(8, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (8,), device="cuda")
opt = torch.optim.{optimizer}(net.parameters(), lr=0.1{words})
for _ in range(2):
    opt.zero_grad()
    loss = torch.nn.CrossEntropyLoss()(net(x), y)
    loss.backward()
    opt.step()
"""


def estimated(folder: Path, *words: str) -> Any:
    done = run(folder, "estimate", *words, "--gpu", "H200", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("optimizer", "words"), [("SGD", ", momentum=0.9"), ("AdamW", "")])
def test_a_script_of_a_zoo_model_is_estimated_as_the_zoo_is(
    optimizer: str, words: str, tmp_path: Path
) -> None:
    root = str(Path(__file__).parents[3])
    (tmp_path / "train.py").write_text(RESNET.format(root=root, optimizer=optimizer, words=words))
    traced = run(tmp_path, "trace", "train.py", "-o", "job.trace")
    assert traced.returncode == 0, traced.stderr
    ours, zoo = (
        estimated(tmp_path, *each)
        for each in (["job.trace"], ["resnet18", "--batch", "8", "--optimizer", optimizer.lower()])
    )
    for key in ("live_peak_bytes", "reserved_peak_bytes"):
        assert ours["memory"][key] == pytest.approx(zoo["memory"][key], rel=0.01)
    times = [each["gpus"][0]["step_seconds"]["p50"] for each in (ours, zoo)]
    assert times[0] == pytest.approx(times[1], rel=0.03)


def test_frozen_weights_count_as_parameters(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(NET + LORA + LOOP.format(step=PLAIN))
    traced = run(tmp_path, "trace", "train.py", "-o", "job.trace")
    assert traced.returncode == 0, traced.stderr
    frozen = 4 * (256 * 512 + 512 + 512 * 256 + 256)
    assert estimated(tmp_path, "job.trace")["memory"]["breakdown"]["parameters"] > frozen


def test_a_script_that_cannot_be_traced_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n\nraise ValueError('no data here')\n")
    done = run(tmp_path, "trace", "train.py", "-o", "job.trace")
    assert done.returncode == 2
    assert "line 3" in done.stderr
    assert not (tmp_path / "job.trace").exists()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (
            "import torch\nx = torch.randn(4, device='cuda')\nx[x > 0]\n",
            ["train.py, line 3", "values of a tensor"],
        ),
        ("import torch\ntorch.randn(4).cuda().numpy()\n", ["train.py, line 2", "can't convert cuda"]),
        ("import torch\nrange(torch.ones(1).cuda().sum())\n", ["train.py, line 2", "a loop bound"]),
        ("import torch\ntorch.zeros(torch.ones(1).cuda().item())\n", ["train.py, line 2", "a size"]),
        ("import torch\n\ntorch.load('weights.pt')\n", ["train.py, line 3", "a file is missing"]),
        ("import own\nown.fault()\n", ["own.py, line 3"]),
        ("import torch\ndef f(:\n", ["train.py, line 2"]),
        ("import torch\nraise SystemExit(3)\n", ["train.py, line 2", "exit code 3"]),
        ("import torch\ntorch.mm(torch.randn(2, 3), torch.randn(4, 5))\n", ["train.py, line 2"]),
        ("print(1)\n", ["ran no PyTorch operation"]),
    ],
)
def test_the_reason_and_the_line_of_the_users_own_code_are_told(
    script: str, says: list[str], tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(
        "import torch\ndef fault():\n    return torch.randn(3).cuda().nonzero()\n"
    )
    (tmp_path / "train.py").write_text(script)
    done = run(tmp_path, "trace", "train.py", "-o", "job.trace")
    assert done.returncode == 2
    assert all(each in done.stderr for each in says), done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3


ENTRIES = """import torch
def needs(batch, rate): ...
def depends(batch):
    x = torch.randn(batch, 4, device="cuda")
    return x[x > 0]
"""


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("train:needs", "needs `rate`"),
        ("train:depends", "train.py, line 5"),
        ("train:nothing", "no function `nothing`"),
        ("nowhere:main", "no module `nowhere`"),
        ("train", "module:function"),
    ],
)
def test_an_entry_that_cannot_be_traced_is_told_why(entry: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ENTRIES)
    done = run(tmp_path, "trace", "--entry", entry, "-o", "job.trace")
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.parametrize("autocast", [False, True])
def test_attention_without_gradients_takes_the_path_a_gpu_takes(autocast: bool) -> None:
    """As recorded on an H200: the fast path, or under autocast one product over all tokens."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from teraflock.workload.tracing.cuda import CudaChoices
    from teraflock.workload.tracing.pretending import pretending
    from teraflock.workload.tracing.recorder import Recorder

    recorder, choices = Recorder(), CudaChoices()
    with pretending(choices), FakeTensorMode(), recorder, choices:
        layer = torch.nn.MultiheadAttention(64, 4, batch_first=True).eval()
        x, before = torch.randn(3, 5, 64), len(recorder.events)
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            layer(x, x, x, need_weights=False)
        kinds = [event % EVENT_KINDS for event in recorder.events[before:]]
        places = [event // EVENT_KINDS for event in recorder.events[before:]]
        names = [
            recorder.operations[place].name
            for kind, place in zip(kinds, places, strict=True)
            if kind == EventKind.OPERATE
        ]
        recorder.paused = True
    if autocast:
        assert "mm" in names
        assert "bmm" not in names
    else:
        assert names == ["addmm", "_scaled_dot_product_efficient_attention", "addmm"]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_says_forward_and_backward_whether_it_is_causal(causal: bool, half: bool) -> None:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from teraflock.workload.tracing.cuda import CudaChoices
    from teraflock.workload.tracing.pretending import pretending
    from teraflock.workload.tracing.recorder import Recorder

    recorder, choices = Recorder(), CudaChoices()
    with pretending(choices), FakeTensorMode(), recorder, choices:
        kind = torch.bfloat16 if half else torch.float32
        x = torch.randn(2, 4, 16, 64, dtype=kind, requires_grad=True)
        torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=causal).sum().backward()
        found = {each.name: each.attributes for each in recorder.operations if "attention" in each.name}
        recorder.paused = True
    assert sorted(name.endswith("backward") for name in found) == [False, True]
    assert list(found.values()) == [[1] if causal else []] * 2


WAITING = """import torch
from torch.utils.data import DataLoader, TensorDataset
net = torch.nn.Linear(512, 512).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = DataLoader(TensorDataset(torch.randn(256, 512)), batch_size=64, pin_memory={pinned})
for x, in data:
    loss = net(x.to("cuda", non_blocking={unblocked})).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    {read}
    opt.step()
"""


@pytest.mark.parametrize(
    ("words", "waits"),
    [
        ({"read": "loss.item()"}, [("copy_to_gpu", [0, 0]), ("_local_scalar_dense", [])]),
        ({"pinned": True}, [("copy_to_gpu", [1, 0])]),
        ({"pinned": True, "unblocked": True}, [("copy_to_gpu", [1, 1])]),
        ({"read": "loss.cpu()"}, [("copy_to_gpu", [0, 0]), ("copy_to_host", [])]),
        ({"read": "print(f'{loss:.3f}')"}, [("copy_to_gpu", [0, 0]), ("_local_scalar_dense", [])]),
        ({"read": "net.bias.tolist()"}, [("copy_to_gpu", [0, 0]), ("_local_scalar_dense", [])]),
        ({"read": "net.bias.sum() > 3 or None"}, [("copy_to_gpu", [0, 0]), ("_local_scalar_dense", [])]),
    ],
    ids=["item", "pinned", "unblocked", "cpu", "print", "tolist", "condition"],
)
def test_what_the_host_waits_for_is_recorded(
    words: dict[str, Any], waits: list[tuple[str, list[int]]], tmp_path: Path
) -> None:
    from teraflock.workload.trace import Mark
    from teraflock.workload.tracing.script import trace_script

    script = tmp_path / "train.py"
    script.write_text(WAITING.format(**{"read": "pass", "pinned": False, "unblocked": False, **words}))
    trace = trace_script(script)
    step = trace.events[trace.events.index(Mark.STEP * EVENT_KINDS + EventKind.MARK) :]
    made = [trace.operations[e // EVENT_KINDS] for e in step if e % EVENT_KINDS == EventKind.OPERATE]
    known = ("copy_to_gpu", "copy_to_host", "_local_scalar_dense")
    assert [(each.name, each.attributes) for each in made if each.name in known] == waits


PACKED = """import torch
from torch.nn.utils.rnn import pack_padded_sequence
net = torch.nn.LSTM(16, 32, batch_first=True).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    x = pack_padded_sequence(torch.randn(4, 30, 16, device="cuda"), torch.full((4,), 30), batch_first=True)
    opt.zero_grad()
    net(x)[0].data.pow(2).mean().backward()
    opt.step()
"""


def test_lengths_of_packed_sequences_are_not_read_from_the_gpu(tmp_path: Path) -> None:
    from teraflock.workload.tracing.script import trace_script

    script = tmp_path / "train.py"
    script.write_text(PACKED)
    assert not any(each.name == "_local_scalar_dense" for each in trace_script(script).operations)


@pytest.mark.parametrize(("keys", "values", "dropout"), [(192, 128, 0.0), (64, 64, 0.1)])
def test_attention_takes_narrow_values_and_shared_keys_with_dropout(
    keys: int, values: int, dropout: float
) -> None:
    """DeepSeek's heads in 16 bits, for which neither cuDNN nor flash attention has a kernel, and fp32 with dropout."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from teraflock.workload.tracing.cuda import CudaChoices
    from teraflock.workload.tracing.pretending import pretending
    from teraflock.workload.tracing.recorder import Recorder

    recorder, choices = Recorder(), CudaChoices()
    kind = torch.float32 if dropout else torch.bfloat16
    with pretending(choices), FakeTensorMode(), recorder, choices:
        query = torch.randn(2, 8, 16, keys, dtype=kind, requires_grad=True)
        key, value = (
            torch.randn(2, 2 if dropout else 8, 16, each, dtype=kind, requires_grad=True)
            for each in (keys, values)
        )
        attend = torch.nn.functional.scaled_dot_product_attention
        if dropout and "enable_gqa" not in (attend.__doc__ or ""):
            pytest.skip("this version of PyTorch cannot share keys")
        words = {"enable_gqa": True} if dropout else {}
        out = attend(query, key, value, dropout_p=dropout, is_causal=True, **words)
        out.sum().backward()
        names = {each.name for each in recorder.operations}
        recorder.paused = True
    assert out.shape == (2, 8, 16, values)
    assert ("_scaled_dot_product_efficient_attention" in names) != bool(dropout)


FROZEN = """
import torch
from torch import nn
teacher, net = nn.Linear(8, 8).cuda(), nn.Linear(8, 8).cuda()
for each in teacher.parameters():
    each.requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    known = teacher(torch.ones(4, 8, device="cuda")).relu()
    loss = (net(known).tanh() - known).square().mean()
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
"""


def test_operations_that_record_no_gradient_are_marked(tmp_path: Path) -> None:
    from teraflock.workload.trace import Mark
    from teraflock.workload.tracing.script import trace_script

    script = tmp_path / "train.py"
    script.write_text(FROZEN)
    trace = trace_script(script)
    phases: dict[str, set[int]] = {}
    phase = int(Mark.STEP)
    for event in trace.events[trace.events.index(Mark.STEP * EVENT_KINDS + EventKind.MARK) :]:
        kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
        if kind == EventKind.MARK:
            phase = argument
        elif kind == EventKind.OPERATE:
            phases.setdefault(trace.operations[argument].name, set()).add(phase)
    assert phases["relu"] == {Mark.PLAIN}
    assert phases["tanh"] == {Mark.RECORDED}
    assert phases["tanh_backward"] == {Mark.BACKWARD}
    assert phases["_foreach_norm.Scalar"] == {Mark.PLAIN}
    assert {each.name: each.attributes for each in trace.operations if each.name.startswith("_foreach")} == {
        "_foreach_norm.Scalar": [2],
        "_foreach_mul_": [2],
        "_foreach_add_": [2],
    }
