"""Scripts as people have them, traced unchanged. Each line says what a reader of the script would count.

Needs PyTorch, which is no part of the test environment's lock. With it, two scripts run here and all of them with
`TERA_CORPUS=all`, as `make corpus` does.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: `make corpus` runs these")

SCRIPTS = Path(__file__).parent / "scripts"
DECLARED = Path(__file__).parent / "declared"
"""So that scripts which import torchvision can do so where its compiled library does not load."""
QUICK = frozenset({"dcgan.py", "widths.py"})
SECONDS_MAX = 120

# script, parameters, samples a step, forward and backward passes, optimizers
CASES: list[tuple[str, int, int, int, int, list[str]]] = [
    ("nanogpt.py", 10_745_088, 64, 1, 1, ["AdamW"]),
    ("mnist.py", 1_199_882, 64, 1, 1, ["Adadelta"]),
    ("imagenet.py", 11_689_512, 256, 1, 1, ["SGD"]),
    ("vae.py", 652_824, 128, 1, 1, ["Adam"]),
    ("dcgan.py", 3_576_704 + 2_765_568, 64, 4, 3, ["Adam", "Adam"]),
    ("mnist_rnn.py", 26_602, 64, 1, 1, ["Adadelta"]),
    ("siamese.py", 143_297, 64, 1, 1, ["Adadelta"]),
    ("word_language_model.py", 13_987_678, 20, 1, 1, []),
    ("regression.py", 5, 32, 1, 1, []),
    ("launched.py", 636_554, 8, 1, 1, ["AdamW"]),
    ("widths.py", 173_314, 8, 1, 1, ["SGD"]),
    ("serve.py", 11_689_512, 16, 1, 0, []),
    ("packed.py", 660_490, 16, 1, 1, ["Adam"]),
    ("sparse_graph.py", 23_063, 2708, 1, 1, ["Adam"]),
    ("sparse_embedding.py", 482_113, 256, 1, 1, ["SparseAdam", "Adam"]),
    ("reinforce.py", 898, 21, 21, 1, ["Adam"]),
    ("hogwild.py", 21_840, 64, 1, 1, ["SGD"]),
    ("sharded.py", 112_868, 8, 1, 1, ["AdamW"]),
    ("boxes.py", 13_758, 4, 1, 1, ["Adam"]),
    ("masks.py", 9_701, 8, 1, 1, ["Adam"]),
    ("prefetch.py", 8 * 27 + 8 + 90, 16, 1, 1, ["SGD"]),
    ("wgan_gp.py", 25_695_364, 320, 22, 6, ["Adam", "Adam"]),
    ("ddpm.py", 68_793_091, 32, 1, 1, ["AdamW"]),
    ("style_transfer.py", 555_328 + 3 * 512 * 512, 1, 20, 20, ["LBFGS"]),
    ("fp16_accumulate.py", 20_305_588, 128, 4, 4, ["SGD"]),
    ("unet_segmentation.py", 31_037_698, 8, 1, 1, ["RMSprop"]),
    ("lstm_lm.py", 28_434_378, 64, 1, 1, []),
    ("two_towers.py", 87_985_217, 128, 1, 1, ["AdamW"]),
    ("ppo.py", 167_185, 512, 2, 1, ["Adam"]),
    ("graph_attention.py", 70_760, 20_000, 1, 1, ["Adam"]),
    ("classify_server.py", 86_567_656, 16, 1, 0, []),
    ("accelerate_t5.py", 60_506_624, 32, 2, 2, ["AdamW"]),
    ("chunked_loss.py", 200_827_904, 8, 1, 1, ["AdamW"]),
    ("sam.py", 11_173_962, 128, 2, 2, ["SAM", "SGD"]),
    ("muon.py", 162_201_600, 8, 1, 1, ["AdamW", "Muon"]),
    ("ddp_alone.py", 28_589_128, 64, 1, 1, ["AdamW"]),
    ("moco.py", 2 * 27_966_656, 64, 1, 1, ["SGD"]),
    ("nerf.py", 530_052, 2048, 1, 1, ["Adam"]),
    ("vqvae.py", 662_083, 64, 1, 1, ["Adam"]),
    ("translate.py", 27_994_896, 128, 1, 1, ["Adam"]),
    ("distill.py", 47_368_192, 96, 2, 1, ["NAdam"]),
    ("compiled_gpt.py", 135_780_864, 16, 1, 1, ["AdamW"]),
    ("trainer_bert.py", 109_483_778, 32, 1, 1, ["AdamW"]),
    ("detector.py", 41_367_656, 4, 1, 1, ["SGD"]),
    ("gan_critic.py", 428_561, 192, 11, 4, ["Adam", "RMSprop"]),
    ("accumulate_rest.py", 6_090, 64, 4, 4, ["SGD"]),
    ("plain_tensors.py", 26_122, 32, 0, 1, []),
    ("a2c.py", 515, 80, 6, 1, ["RMSprop"]),
    ("text_generate.py", 184_832, 4, 20, 0, []),
    ("display.ipynb", 193, 50, 1, 1, ["Adam"]),
    ("accumulate.ipynb", 64 * 128 + 128 + 128 * 4 + 4, 64, 4, 4, ["Adam"]),
]


def traced(folder: Path, script: str, *words: str) -> Any:
    for each in SCRIPTS.iterdir():
        if each.is_file():
            shutil.copy(each, folder)
    done = subprocess.run(
        [sys.executable, "-m", "teraflock", "trace", script, "-o", "job.trace", "--json", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
        env={**os.environ, "EVAL_ITERS": "8", "PYTHONPATH": str(DECLARED)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def estimated(folder: Path, *more: str) -> Any:
    words = ["estimate", "job.trace", "--gpu", "H200", "--json", *more]
    done = subprocess.run(
        [sys.executable, "-m", "teraflock", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("script", "parameters", "samples", "forwards", "backwards", "optimizers"),
    CASES,
    ids=[c[0] for c in CASES],
)
def test_a_script_is_traced_as_its_reader_would_count(
    script: str,
    parameters: int,
    samples: int,
    forwards: int,
    backwards: int,
    optimizers: list[str],
    tmp_path: Path,
) -> None:
    if script not in QUICK and os.environ.get("TERA_CORPUS") != "all":
        pytest.skip("`make corpus` runs the whole corpus")
    seen = traced(tmp_path, script)
    assert sum(seen["parameters"].values()) == parameters
    assert seen["samples_per_step"] == samples
    assert (seen["forward_passes"], seen["backward_passes"]) == (forwards, backwards)
    assert seen["optimizers"] == optimizers
    found = estimated(tmp_path)
    weights = sum((4 if kind == "float32" else 2) * count for kind, count in seen["parameters"].items())
    assert found["memory"]["live_peak_bytes"] >= weights
    assert found["gpus"][0]["samples_per_second"] > 0


def test_host_memory_is_not_gpu_memory(tmp_path: Path) -> None:
    """`launched.py` holds 2.3 GiB of data on the host; its model is small."""
    traced(tmp_path, "launched.py")
    assert estimated(tmp_path)["memory"]["live_peak_bytes"] < 256 << 20


@pytest.mark.parametrize(("script", "argument"), [("mnist.py", "--batch-size"), ("dcgan.py", "")])
def test_one_trace_serves_any_batch(script: str, argument: str, tmp_path: Path) -> None:
    if os.environ.get("TERA_CORPUS") != "all" and script not in QUICK:
        pytest.skip("one script is enough here: `make corpus` runs all")
    found = traced(tmp_path, script, "--any-batch")
    assert found["samples_per_step"] == 0
    made = estimated(tmp_path, "--batch", "128")
    assert made["gpus"][0]["largest_batch"] > 1000
    if argument:
        traced(tmp_path, script, "--", argument, "128")
        alone = estimated(tmp_path)
        assert alone["memory"] == made["memory"]
        assert alone["gpus"][0]["step_seconds"] == made["gpus"][0]["step_seconds"]
