"""The table of cards is complete, plausible, and equal to its sources."""

import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from teraflock.base.errors import UnknownName
from teraflock.base.quantities import GIB
from teraflock.catalog.cards import all_accelerators, all_cards, all_slices, card, families, slices_of
from teraflock.catalog.model import Card

SPECS = Path(__file__).parents[4] / "shared" / "facts" / "gpu_specs.csv"
NOT_CHECKED = "public data sheet figure, not checked"
FP64_SHARES = {
    "3.5": 3, "3.7": 3, "5.2": 32, "6.0": 2, "6.1": 32, "7.0": 2, "7.5": 32, "8.0": 2, "8.6": 64, "8.9": 64, "9.0": 2,
    "10.0": 2, "12.0": 64,
}  # fmt: skip
"""Compute capability → how many times faster FP32 is than FP64, by the number of units in a multiprocessor."""
FEW_FP64_UNITS = {"H20", "H800-SXM5", "H800-PCIe", "B300", "GB300"}
TENSOR_FACTORS = {"7.0": (8,), "7.5": (8, 4), "8.0": (16,), "8.6": (4, 2), "8.9": (4, 2), "12.0": (4, 2)}
"""Compute capability → FP16 on tensor cores by FP32: first of workstation and server cards, then of GeForce."""
OTHER_CLOCKS = {
    "TitanV",
    "RTX4000Ada",
}  # their makers give tensor rates at a lower clock than that of FP32
HALVED = {
    "A10G",
    "L40",
    "L20",
}  # server cards with the tensor rate of GeForce; TITAN RTX is the other way round


@pytest.fixture(params=all_cards(), ids=lambda each: each.id)
def each_card(request: pytest.FixtureRequest) -> Card:
    found = request.param
    assert isinstance(found, Card)
    return found


def test_ids_names_and_ranks_are_unique() -> None:
    ids = [each.id for each in all_cards()] + [each.id for each in all_accelerators()]
    assert [each for each, count in Counter(ids).items() if count > 1] == []
    names = Counter(each.name for each in all_cards())
    assert [each for each, count in names.items() if count > 1] == []
    for family, cards in families().items():
        assert [each.rank for each in cards] == list(range(1, len(cards) + 1)), family


def test_figures_are_plausible(each_card: Card) -> None:
    assert 2010 <= each_card.year <= 2026
    assert 4 <= each_card.memory_gb <= 300
    assert each_card.memory_bytes == each_card.memory_gb * GIB
    assert 60 <= (each_card.bandwidth_gbs or 0) <= 8500
    assert each_card.sms is None or 6 <= each_card.sms <= 320
    assert each_card.fp32_tflops is None or 2 <= each_card.fp32_tflops <= 170
    assert each_card.tdp_watts is None or 25 <= each_card.tdp_watts <= 1400
    assert each_card.nvlink_gbs is None or 0 <= each_card.nvlink_gbs <= 1800


def test_tensor_rates_are_dense_and_above_plain_ones(each_card: Card) -> None:
    if not each_card.fp16_tensor_tflops:
        assert not each_card.bf16 or each_card.fp16_tensor_tflops is None
        assert not each_card.tf32_tensor_tflops
        return
    assert each_card.fp32_tflops is not None
    # A sparse figure would be twice the dense one, and no card has more than 35 times its FP32 rate.
    assert 1.9 * each_card.fp32_tflops <= each_card.fp16_tensor_tflops <= 35 * each_card.fp32_tflops
    if each_card.tf32_tensor_tflops:
        assert each_card.fp16_tensor_tflops == pytest.approx(2 * each_card.tf32_tensor_tflops, rel=0.03)


def test_usable_memory_is_slightly_below_nominal_memory(each_card: Card) -> None:
    if each_card.usable_memory_mib is None:
        assert each_card.usable_memory_bytes is None
        return
    assert 0.9 <= each_card.usable_memory_mib / (each_card.memory_gb * 1024) <= 1.0
    assert each_card.usable_source != "none"


def test_every_card_has_a_source(each_card: Card) -> None:
    assert each_card.source
    assert each_card.usable_source


def test_only_nvidia_cards_have_cuda(each_card: Card) -> None:
    assert each_card.cuda == (each_card.maker == "NVIDIA")


def test_unknown_figures_are_empty_and_missing_features_are_zero() -> None:
    assert card("RTXPRO4500-Server").fp16_tensor_tflops is None
    assert card("P40").fp16_tensor_tflops == 0
    assert not card("P40").tensor_cores
    assert card("H100-SXM5").tensor_cores


def test_an_unknown_id_gets_suggestions() -> None:
    with pytest.raises(UnknownName) as caught:
        card("V100-SXM3")
    assert "`V100-SXM2`" in caught.value.hint


def test_a_slice_is_not_larger_than_its_card() -> None:
    for part in all_slices():
        cards = [each for each in families()[part.family] if each.memory_gb == part.card_memory_gb]
        assert cards, part
        assert 0 < part.share <= 1
        assert part.memory_gb <= part.card_memory_gb
        assert part.profile.endswith(f".{part.memory_gb}gb")
        assert not part.form or part.form in {each.form for each in cards}
        for each in cards:
            if part in slices_of(each):
                assert (part.sms or 0) <= (each.sms or 0), (each.id, part.profile)
                assert (part.usable_memory_mib or 0) <= (each.usable_memory_mib or 1024 * each.memory_gb)


def test_every_form_of_a_card_has_the_same_slices() -> None:
    """They differ in their SMs only: an H100 PCIe has fewer than an H100 SXM5."""
    for cards in families().values():
        profiles = {
            each.memory_gb: {part.profile for part in slices_of(each)} for each in cards if slices_of(each)
        }
        for each in cards:
            if each.memory_gb in profiles:
                assert {part.profile for part in slices_of(each)} == profiles[each.memory_gb]
                assert len(slices_of(each)) == len(profiles[each.memory_gb])
    sms = {
        name: {part.profile: part.sms for part in slices_of(card(name))}
        for name in ("H100-PCIe", "H100-SXM5")
    }
    assert sms["H100-PCIe"]["3g.40gb"] == 46
    assert sms["H100-SXM5"]["3g.40gb"] == 60


def test_boards_with_several_dies_are_listed_per_die() -> None:
    for name in ("K80", "M60", "A16", "MI250X", "SG1", "GB200"):
        assert card(name).note.startswith("PER "), name


@pytest.mark.skipif(not SPECS.exists(), reason="the table of checked figures is not available")
def test_56_cards_equal_the_checked_table() -> None:
    with SPECS.open(newline="") as lines:
        specs = list(csv.DictReader(lines))
    assert len(specs) == 56
    assert [_as_spec(card(spec["gpu"])) for spec in specs] == [_numbers(spec) for spec in specs]
    assert len(all_cards()) - len(specs) == sum(each.source.startswith(NOT_CHECKED) for each in all_cards())


_SAME = {
    "year": "year",
    "arch": "architecture",
    "compute_capability": "compute_capability",
    "sms": "sms",
    "mem_gb": "memory_gb",
    "usable_mib_nvidia_smi": "usable_memory_mib",
    "mem_type": "memory_type",
    "bw_gbs": "bandwidth_gbs",
    "fp32_tflops": "fp32_tflops",
    "fp16_plain_tflops": "fp16_tflops",
    "tf32_tensor_dense_tflops": "tf32_tensor_tflops",
    "fp16_tensor_dense_tflops_fp32acc": "fp16_tensor_tflops",
    "tdp_w": "tdp_watts",
    "nvlink_gbs": "nvlink_gbs",
    "note": "note",
    "usable_source": "usable_source",
}


def _as_spec(each: Card) -> dict[str, object]:
    return {column: getattr(each, field) for column, field in _SAME.items()} | {"bf16": each.bf16}


def _numbers(spec: dict[str, str]) -> dict[str, object]:
    texts = {"arch", "compute_capability", "mem_type", "note", "usable_source"}
    row: dict[str, object] = {
        column: spec[column] if column in texts else float(spec[column]) if spec[column] else None
        for column in _SAME
    }
    # Its estimate for cards without a reading is not ours (`estimate.cards.USABLE_SHARE`).
    row["usable_source"] = spec["usable_source"].removesuffix(": estimate 0.945 x 1024 x mem_gb")
    return row | {"bf16": spec["bf16"] == "yes"}


def test_looking_up_names_imports_no_slow_modules() -> None:
    script = (
        "import json, sys; before = set(sys.modules); import msgspec; base = set(sys.modules);"
        "from teraflock.catalog.names import find_kinds; find_kinds('A100');"
        "from teraflock.catalog.providers import provider_id; provider_id('aws');"
        "print(json.dumps(sorted(set(sys.modules) - base)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert "teraflock.catalog.names" in loaded
    assert loaded & {"numpy", "pathlib", "inspect", "importlib.resources", "tomllib", "difflib"} == set()


def test_figures_beyond_fp32_are_plausible(each_card: Card) -> None:
    single = each_card.fp32_tflops
    if each_card.sms:
        assert each_card.cores is not None
        assert each_card.cores % each_card.sms == 0
    if each_card.fp64_tflops is not None and single:
        assert single / 80 <= each_card.fp64_tflops <= single * 1.05
    if each_card.fp64_tensor_tflops:
        assert each_card.fp64_tensor_tflops >= (each_card.fp64_tflops or 0)
    if (
        each_card.int8_tops
        and each_card.fp16_tensor_tflops
        and not each_card.architecture.startswith("Volta")
    ):
        assert each_card.int8_tops >= 0.99 * each_card.fp16_tensor_tflops
    if each_card.fp8_tensor_tflops:
        assert each_card.fp8_tensor_tflops == pytest.approx(2 * (each_card.fp16_tensor_tflops or 0), rel=0.03)
    assert not each_card.ray_tracing or each_card.graphics
    assert bool(each_card.encodes) == bool(each_card.encoders) or each_card.encoders is None


def test_rates_follow_from_the_units_of_the_architecture(each_card: Card) -> None:
    single, capability = each_card.fp32_tflops, each_card.compute_capability
    if not capability or single is None:
        return
    if each_card.id not in FEW_FP64_UNITS:
        assert each_card.fp64_tflops == pytest.approx(single / FP64_SHARES[capability], rel=0.02)
    if capability not in TENSOR_FACTORS or not each_card.fp16_tensor_tflops:
        return
    geforce = each_card.name.startswith("GeForce")
    factor = TENSOR_FACTORS[capability][-1 if geforce or each_card.id in HALVED else 0]
    if each_card.id not in OTHER_CLOCKS:
        assert each_card.fp16_tensor_tflops == pytest.approx(factor * single, rel=0.02)
    if capability != "7.0":  # Volta computes INT8 without tensor cores
        assert each_card.int8_tops == pytest.approx(
            (4 if geforce else 2) * each_card.fp16_tensor_tflops, rel=0.02
        )


@pytest.mark.parametrize(
    ("name", "count", "figure", "total"),
    [
        ("S7150", 4, "cores", 8192),
        ("S7150", 4, "fp64_tflops", 1.0),
        ("M40", 2, "cores", 6144),
        ("P100-PCIe", 8, "fp32_tflops", 74.4),
        ("P100-PCIe", 8, "fp64_tflops", 37.6),
        ("P4", 2, "int8_tops", 44),
        ("V100-SXM2", 8, "fp16_tensor_tflops", 1000),
        ("V100-SXM2", 8, "fp32_tflops", 125.6),
        ("V100-SXM2", 8, "fp64_tflops", 62.4),
    ],
)
def test_figures_equal_those_that_providers_publish(name: str, count: int, figure: str, total: float) -> None:
    assert count * getattr(card(name), figure) == pytest.approx(total)
