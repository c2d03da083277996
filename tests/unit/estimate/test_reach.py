"""The share of its peak that a card reaches: traits and chips, recovery of a known law, better cards are no slower."""

from math import exp

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.operators import CARDS, OPERATORS, Latency, view
from lab.reach import fit, usual_watts

from teraflock.catalog.cards import all_cards, card
from teraflock.catalog.model import Card
from teraflock.estimate.cards import MEASURED_ID, generation, peaks
from teraflock.estimate.operation import work
from teraflock.estimate.reach import factor, fitted, shape, shortage, traits
from teraflock.estimate.scaled import seconds_on
from teraflock.estimate.speed import measured, seconds_h200

NVIDIA = [each for each in all_cards() if each.cuda and each.fp32_tflops and each.bandwidth_gbs]
WORKS = [
    work("mm", [("f", [4096, 768], True), ("f", [768, 768], True)], [("f", [4096, 768], True)], []),
    work("relu", [("f", [64, 256, 56, 56], True)], [("f", [64, 256, 56, 56], True)], []),
    work(
        "convolution",
        [("f", [64, 128, 28, 28], True), ("f", [128, 128, 3, 3], True)],
        [("f", [64, 128, 28, 28], True)],
        [1, 1, 1, 0, 1],
    ),
]  # fmt: skip


def seconds(one: Card) -> float:
    there = peaks(one)
    assert there is not None
    return sum(seconds_on(each, seconds_h200(each, measured(), "fp32"), there, tf32=False) for each in WORKS)


@pytest.mark.parametrize("one", NVIDIA, ids=lambda each: each.id)
def test_every_card_reaches_a_plausible_share_of_its_peak(one: Card) -> None:
    reach = fitted()
    for effects in (reach.matmul, reach.convolution, reach.bandwidth):
        assert 0.5 < factor(effects, one) < 2
    assert 0.3 < exp(reach.sag * shortage(one, reach.watts)) <= 1
    assert generation(one) is not None
    assert seconds(one) > 0


@given(
    one=st.sampled_from([each for each in NVIDIA if each.id != MEASURED_ID]),
    compute=st.floats(1, 4),
    memory=st.floats(1, 4),
)
def test_a_better_data_sheet_never_makes_a_card_slower(one: Card, compute: float, memory: float) -> None:
    """Even though more arithmetic with the same power lowers the clock. The fitted power rule may miss by 1 %."""
    assert one.fp32_tflops
    assert one.bandwidth_gbs
    better = msgspec.structs.replace(
        one,
        fp32_tflops=one.fp32_tflops * compute,
        tf32_tensor_tflops=one.tf32_tensor_tflops and one.tf32_tensor_tflops * compute,
        bandwidth_gbs=one.bandwidth_gbs * memory,
    )
    assert seconds(better) <= seconds(one) * 1.01


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("P4", ("inline_ecc", "wide")),
        ("T4", ("inline_ecc", "narrow")),
        ("V100-PCIe", ("free", "narrow")),
        ("A100-PCIe-40", ("free", "narrow")),
        ("A10", ("inline_ecc", "wide")),
        ("RTX4090", ("free", "wide")),
        ("H200-SXM", ("free", "wide")),
    ],
)
def test_traits_of_known_cards(name: str, expected: tuple[str, str]) -> None:
    assert traits(card(name))[1:] == expected


def rows_of_a_law(constants: dict[str, float], bandwidth: float) -> list[Latency]:
    """Operators that follow one law: a smooth curve over the shape, and a constant for each card."""
    shapes = {
        "linear": [
            {"rows": m, "in_features": k, "out_features": n}
            for m in (512, 2048, 8192) for k in (256, 1024, 4096) for n in (128, 1000, 3072)
        ],
        "bmm": [{"batch": b, "m": m, "k": k, "n": 512} for b in (8, 64) for m in (128, 512) for k in (64, 512)],
        "conv": [
            {"batch": b, "in_channels": i, "out_channels": o, "input_size": s, "kernel_size": 3, "stride": 1,
             "padding": 1}
            for b in (8, 32) for i in (32, 128) for o in (64, 512) for s in (28, 56)
        ],
    }  # fmt: skip
    plain = [{"rows": r, "cols": c} for r in (4096, 16384) for c in (1024, 4096)]
    made = []
    for name in OPERATORS:
        for sizes in shapes.get(name, plain):
            one = view(name, sizes)

            def on(gpu: str, name: str = name, one=one) -> float:  # type: ignore[no-untyped-def]
                known = card(gpu)
                if name not in shapes:
                    return float(one.bytes / (known.bandwidth_gbs or 1) / 1e9 / exp(bandwidth))
                law = 0.3 - 0.2 * shape(one.dims, one.flops / one.bytes)[1]
                return float(one.flops * exp(law - constants[gpu]) / (known.fp32_tflops or 1) / 1e12)

            made.append(
                Latency(
                    operator=name, work=one, seconds={gpu: on(gpu) for gpu in CARDS}, h200=on(MEASURED_ID)
                )
            )
    return made


@given(
    narrow=st.floats(-0.3, 0.3),
    wide=st.floats(-0.3, 0.3),
    sag=st.floats(0.1, 0.9),
    held=st.sampled_from(CARDS),
)
@settings(max_examples=25, deadline=None)
def test_the_fit_recovers_a_law_and_predicts_a_held_out_card(
    narrow: float, wide: float, sag: float, held: str
) -> None:
    watts = usual_watts()
    trait = {"narrow": narrow, "wide": wide}
    constants = {
        gpu: trait[traits(card(gpu))[-1]] + sag * shortage(card(gpu), watts) for gpu in (*CARDS, MEASURED_ID)
    }
    found = fit(rows_of_a_law(constants, bandwidth=-0.1), [each for each in CARDS if each != held])
    chip = card(held).architecture.partition(" ")[2]
    assert chip not in found.matmul.chips
    assert found.sag == pytest.approx(sag, abs=0.02)
    for gpu in CARDS:
        assert factor(found.bandwidth, card(gpu)) == pytest.approx(1, abs=0.01)
        reached = factor(found.matmul, card(gpu)) * exp(found.sag * shortage(card(gpu), watts))
        beside = factor(found.matmul, card(MEASURED_ID))
        assert reached / beside == pytest.approx(exp(constants[gpu] - constants[MEASURED_ID]), rel=0.05)
