"""LoRA over weights in 4 and 8 bits: live peaks and times as measured on an H200, and which adapters are meant."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from lab.drawn import more_outliers_bytes

from teraflock.catalog.cards import card
from teraflock.estimate.answer import answer
from teraflock.estimate.estimator import Estimator, step_of
from teraflock.estimate.model import Question
from teraflock.estimate.speed import PEAKS_H200
from teraflock.estimate.step import OWN
from teraflock.workload.config import named, shape_named, variants_of_family
from teraflock.workload.model import Workload
from teraflock.workload.outliers import share_of_columns

MEASURED = Path(__file__).parents[3] / "lab/measured/judge_quantized.jsonl.gz"
ROWS = [json.loads(line) for line in gzip.decompress(MEASURED.read_bytes()).splitlines()]


def workload(case: dict[str, Any], **words: Any) -> Workload:
    asked = {
        "model": case["model"], "batch": case["batch"], "seq": case["seq"], "optimizer": case["optimizer"],
        "load_in": case["load_in"], "lora_rank": case["lora"], "gradient_checkpointing": bool(case.get("ckpt")),
        "precision": "bf16", "lora_targets": "all", "lora_dtype": "fp32",
    }  # fmt: skip
    return Workload(**{**asked, **words})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(map(str, row["case"].values())))
def test_live_peak_is_as_measured(row: dict[str, Any]) -> None:
    peak = Estimator(workload(row["case"])).memory().live_peak_bytes
    assert peak + more_outliers_bytes(row["case"]) == pytest.approx(row["live"], rel=0.01)


@pytest.mark.parametrize(
    ("hidden", "tokens", "share"),
    [(896, 4096, 0.0), (2048, 4096, 0.19), (3072, 2048, 0.81), (4096, 2048, 1.0)],
)
def test_wide_models_have_outliers_in_more_columns(hidden: int, tokens: int, share: float) -> None:
    """As found by drawing ten million numbers."""
    assert share_of_columns(hidden, tokens) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(map(str, row["case"].values())))
def test_time_is_near_the_measured_one(row: dict[str, Any]) -> None:
    estimator = Estimator(workload(row["case"]))
    seconds = step_of(estimator, estimator.scene(), host=OWN).seconds(PEAKS_H200)
    assert seconds == pytest.approx(row["seconds"], rel=0.26)


def test_adapters_in_float32_keep_their_inputs_in_float32() -> None:
    """Peak of llama-3.1-8b with a batch of 1 and 2,048 tokens: measured 26.8 GiB with adapters in float32."""
    case = ROWS[3]["case"]
    wide, narrow = (
        Estimator(workload(case, lora_dtype=dtype)).memory().live_peak_bytes for dtype in ("fp32", "")
    )
    # Seven casts of each layer: four of the hidden state, two of it for gate and up, one of the MLP's inner state.
    casts = 32 * 2048 * 4 * (6 * 4096 + 14336)
    assert 0.6 * casts < wide - narrow < casts


def test_eight_bits_need_more_memory_than_four_and_less_than_sixteen() -> None:
    case = ROWS[3]["case"]
    four, eight = (
        Estimator(workload(case, load_in=bits, lora_dtype="")).memory().breakdown for bits in ("4bit", "8bit")
    )
    assert four["parameters"] < eight["parameters"] < 16e9
    assert "optimizer" in eight


@pytest.mark.parametrize("bits", ["4bit", "8bit"])
def test_evidence_names_the_bits(bits: str) -> None:
    found = answer(workload(ROWS[3]["case"], load_in=bits), Question(cards=[card("H200-SXM")])).gpus[0]
    assert f"{bits[0]}-bit products" in found.evidence


CAUSAL = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi", "phi3")


@pytest.mark.parametrize("form", ["", "checkpoint+"])
def test_every_decoder_by_config_can_be_tuned_with_four_bits(form: str) -> None:
    names = [
        name
        for name, config in named().items()
        if config["model_type"] in (*CAUSAL, "qwen2_moe", "qwen3_moe")
    ]
    wanted = f"train+bf16+{form}lora-all+4bit"
    missing = {name for name in names if wanted not in variants_of_family(shape_named(name))}
    assert missing == ({name for name in names if name.startswith("gemma-2-")} if form else set())


def test_float8_is_faster_than_bf16_and_refused_on_cards_without_it() -> None:
    words = {"model": "llama-3.1-8b", "batch": 2, "seq": 4096, "optimizer": "adamw"}
    cards = Question(cards=[card("H200-SXM"), card("A100-SXM4-80")])
    plain = answer(Workload(**words, precision="bf16", compile=True), cards).gpus  # type: ignore[arg-type]
    found = answer(Workload(**words, precision="fp8"), cards)  # type: ignore[arg-type]
    assert found.workload.compile
    assert plain[0].step_seconds
    assert found.gpus[0].step_seconds
    assert 1.1 < plain[0].step_seconds.p50 / found.gpus[0].step_seconds.p50 < 2
    assert "FP8 is computed" in found.gpus[0].evidence
    assert found.gpus[1].evidence == "Ampere has no FP8 tensor cores"
    assert found.gpus[1].step_seconds is None
