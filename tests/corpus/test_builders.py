"""Models of torchvision, timm and transformers, trained by a plain loop: as many parameters as the library builds.

Needs PyTorch and these libraries. A few of each run here, all of them with `TERA_CORPUS=all`, as `make corpus` does.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.declared import sitecustomize as _operators  # noqa: F401 -- before torchvision is imported
from tests.corpus.families import TIMM, TORCHVISION_QUICK, TRANSFORMERS
from tests.corpus.forked import forked, traced

torch = pytest.importorskip("torch", reason="PyTorch is not installed: `make corpus` runs these")

LOOP = """
import torch
{build}
model = build().cuda().train()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01, momentum=0.9)
for _ in range(3):
{inputs}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{{loss.item():.3f}}")
"""
SQUARE = """    x, y = torch.rand(4, 3, {side}, {side}).cuda(), torch.randint(0, 10, (4,)).cuda()
    out = model(x)
    out = out if isinstance(out, tuple) else (out,)
    loss = sum(torch.nn.functional.cross_entropy(each, y) for each in out)
"""
DETECTION = """    images = [torch.rand(3, 240, 320).cuda() for _ in range(4)]
    boxes = torch.tensor([[10.0, 20.0, 100.0, 120.0], [50.0, 60.0, 200.0, 200.0]]).cuda()
    points = torch.cat([torch.rand(2, 17, 2) * 40 + 55, torch.ones(2, 17, 1)], 2).cuda()
    masks = torch.randint(0, 2, (2, 240, 320), dtype=torch.uint8).cuda()
    target = {"boxes": boxes, "labels": torch.tensor([1, 1]).cuda(), "masks": masks, "keypoints": points}
    loss = sum(model(images, [target] * 4).values())
"""
SEGMENTATION = """    x, y = torch.rand(4, 3, 96, 96).cuda(), torch.randint(0, 21, (4, 96, 96)).cuda()
    loss = torch.nn.functional.cross_entropy(model(x)["out"], y)
"""
VIDEO = """    x, y = torch.rand(4, 3, 16, {side}, {side}).cuda(), torch.randint(0, 400, (4,)).cuda()
    loss = torch.nn.functional.cross_entropy(model(x), y)
"""
FLOW = """    a, b = torch.rand(4, 3, 128, 128).cuda(), torch.rand(4, 3, 128, 128).cuda()
    loss = sum(each.abs().mean() for each in model(a, b, num_flow_updates=2))
"""


def skip_unless(quick: bool) -> None:
    if not quick and os.environ.get("TERA_CORPUS") != "all":
        pytest.skip("`make corpus` runs the whole corpus")


def counted(build: str, folder: Path) -> int:
    """How many parameters the library builds, without weights where it can."""

    def work() -> int:
        names: dict[str, Any] = {}
        exec(build, names)
        try:
            with torch.device("meta"):
                model = names["build"]()
        except (NotImplementedError, RuntimeError):  # its constructor computes with values
            model = names["build"]()
        return sum(each.numel() for each in model.parameters())

    found: int = forked(work, folder)
    return found


def check(build: str, inputs: str, folder: Path) -> None:
    seen = traced(LOOP.format(build=build, inputs=inputs), folder)
    assert sum(seen["parameters"].values()) == counted(build, folder)
    assert (seen["samples_per_step"], seen["backward_passes"], seen["optimizers"]) == (4, 1, ["SGD"])


def torchvision_models() -> list[str]:
    try:
        from torchvision import models
    except ImportError:
        return []
    return [each for each in models.list_models() if ".quantization" not in _module(each)]


def _module(name: str) -> str:
    from torchvision import models

    module: str = models.get_model_builder(name).__module__
    return module


def torchvision_inputs(name: str) -> tuple[str, str]:
    """Words for the builder, and the loop's inputs."""
    module = _module(name)
    if ".detection" in module:
        return ", weights_backbone=None", DETECTION
    if ".segmentation" in module:
        return ", weights_backbone=None", SEGMENTATION
    if ".video" in module:
        return "", VIDEO.format(side=224 if name.startswith(("mvit", "swin3d", "s3d")) else 112)
    if ".optical_flow" in module:
        return "", FLOW
    return "", SQUARE.format(side=299 if "inception" in name else 224)


@pytest.mark.parametrize("name", torchvision_models())
def test_a_model_of_torchvision_is_traced(name: str, tmp_path: Path) -> None:
    skip_unless(name in TORCHVISION_QUICK)
    words, inputs = torchvision_inputs(name)
    build = (
        f"import torchvision\ndef build(): return torchvision.models.get_model({name!r}, weights=None{words})"
    )
    check(build, inputs, tmp_path)


@pytest.mark.parametrize("name", TIMM)
def test_a_model_of_timm_is_traced(name: str, tmp_path: Path) -> None:
    pytest.importorskip("timm", reason="timm is not installed: `make corpus` runs these")
    skip_unless(name == TIMM[0])
    build = f"import timm\ndef build(): return timm.create_model({name!r}, num_classes=10)"
    check(build, SQUARE.format(side=256 if name.endswith("_256") else 224), tmp_path)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_model_of_transformers_is_traced(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: `make corpus` runs these")
    skip_unless(name in ("LlamaForCausalLM", "DetrForObjectDetection", "MixtralForCausalLM"))
    sizes, inputs = TRANSFORMERS[name]
    kind = (
        (name.rpartition("For")[0] or name)
        .removesuffix("LMHeadModel")
        .removesuffix("MTModel")
        .removesuffix("Model")
    )
    build = f"import transformers as t\ndef build(): return t.{name}(t.{kind}Config(**{sizes!r}))"
    check(build, inputs, tmp_path)
