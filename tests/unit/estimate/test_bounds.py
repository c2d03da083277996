"""What limits operations on other cards, and derived cards: slices, locked clocks, power limits."""

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.catalog.cards import card, slices_of
from teraflock.catalog.model import Card, CardSlice
from teraflock.estimate.bounds import CLASSES, card_model, sm_share
from teraflock.estimate.cards import (
    EVIDENCE,
    FITTED_CARDS,
    MEASURED_ID,
    clock_hz,
    doubt,
    evidence_kind,
    peaks,
)
from teraflock.estimate.derived import is_slice, sliced, throttled
from teraflock.estimate.estimator import Estimator, step_of
from teraflock.estimate.operation import Work, work
from teraflock.estimate.scaled import Scaled, seconds_on
from teraflock.estimate.speed import PEAKS_H200, measured, seconds_h200
from teraflock.workload.model import Workload

H200 = card(MEASURED_ID)
CONVOLUTION = work(
    "convolution",
    [("h", [64, 128, 28, 28], True), ("h", [128, 128, 3, 3], True)],
    [("h", [64, 128, 28, 28], True)],
    [1, 1, 1, 0, 1],
)
MATMUL = work("mm", [("f", [4096, 768], True), ("f", [768, 768], True)], [("f", [4096, 768], True)], [])


def norm(channels: int, name: str = "cudnn_batch_norm_backward") -> Work:
    images = ("f", [64, channels, 28, 28], True)
    return work(name, [images, images], [images], [])


def relu() -> Work:
    images = ("f", [64, 256, 56, 56], True)
    return work("relu", [images], [images], [])


WORKS = [CONVOLUTION, MATMUL, norm(64), norm(1024), relu()]


@given(times=st.lists(st.floats(1e-6, 1e-2), min_size=len(WORKS), max_size=len(WORKS)))
def test_scaling_to_the_h200_changes_nothing(times: list[float]) -> None:
    items = [(each, 3, seconds) for each, seconds in zip(WORKS, times, strict=True)]
    assert isclose(Scaled(items, tf32=False).seconds_on(PEAKS_H200), 3 * sum(times), rel_tol=1e-9)


@given(fewer=st.integers(1, 131), slower=st.floats(0.2, 1.0), narrower=st.floats(0.1, 1.0))
def test_lower_peaks_are_never_faster(fewer: int, slower: float, narrower: float) -> None:
    less = replace(
        PEAKS_H200,
        sms=fewer,
        clock=slower * PEAKS_H200.clock,
        bandwidth=narrower * PEAKS_H200.bandwidth,
        half=PEAKS_H200.half * fewer / 132 * slower,
        fp32=PEAKS_H200.fp32 * fewer / 132 * slower,
    )
    for each in WORKS:
        before = seconds_h200(each, measured(), "fp32")
        assert seconds_on(each, before, less, tf32=False) >= before * (1 - 1e-9)


def test_a_batch_norm_with_few_channels_does_not_need_all_sms() -> None:
    """One block works on each channel: 64 of them keep 66 SMs as busy as 132."""
    half = replace(PEAKS_H200, sms=66)

    def slower(channels: int) -> float:
        whole = 20 * norm(channels).bytes / PEAKS_H200.bandwidth
        return seconds_on(norm(channels), whole, half, tf32=False) / whole

    few, many = slower(64), slower(2048)
    assert few < 1.1
    assert many > 1.5
    assert sm_share(norm(64), card_model()) < sm_share(norm(512), card_model()) < 1


def test_lower_bandwidth_does_not_slow_work_limited_by_sms() -> None:
    """A third of the bandwidth must not triple the time of work that takes ten times its floor on an H200."""
    narrow = replace(PEAKS_H200, bandwidth=PEAKS_H200.bandwidth / 3)
    bound = norm(256)
    floor = bound.bytes / PEAKS_H200.bandwidth
    assert seconds_on(bound, 10 * floor, narrow, tf32=False) < 1.3 * 10 * floor
    assert seconds_on(relu(), relu().bytes / PEAKS_H200.bandwidth * 1.1, narrow, tf32=False) == pytest.approx(
        3 * relu().bytes / PEAKS_H200.bandwidth * 1.1, rel=0.05
    )


def step_seconds(one: Card, model: str = "resnet50", precision: str = "amp-fp16") -> float:
    estimator = Estimator(Workload(model=model, task="train", batch=64, precision=precision, optimizer="sgd"))
    there = peaks(one)
    assert there is not None
    return step_of(estimator, estimator.scene()).seconds(there)


def test_a_4090_beats_a_v100() -> None:
    for model in ("vgg16", "resnet50"):
        assert step_seconds(card("RTX4090"), model) < step_seconds(card("V100-SXM2"), model)


@pytest.mark.parametrize("name", ["H200-SXM", "A100-SXM4-80", "H100-SXM5", "H100-PCIe", "A30"])
def test_larger_slices_are_faster_and_the_whole_card_is_fastest(name: str) -> None:
    whole = card(name)
    parts = slices_of(whole)
    by_size = sorted(parts, key=lambda each: (each.sms or 0, each.memory_share))
    times = [step_seconds(sliced(whole, each)) for each in by_size]
    assert times == sorted(times, reverse=True)
    assert times[-1] >= 0.99 * step_seconds(whole)


def test_slices_of_an_h200_match_measured_times() -> None:
    """resnet50 in fp32 at batch 64: 212, 105, 61 and 56 ms on slices of 1, 2, 3 and 4 sevenths."""
    measured_ms = {"1g.18gb": 212, "2g.35gb": 105, "3g.71gb": 61, "4g.71gb": 56}
    parts = {each.profile: each for each in slices_of(H200)}
    for profile, expected in measured_ms.items():
        found = 1000 * step_seconds(sliced(H200, parts[profile]), precision="fp32")
        assert found == pytest.approx(expected, rel=0.08)


def test_a_slice_is_a_separate_card() -> None:
    part = CardSlice(
        family="H200",
        card_memory_gb=141,
        profile="1g.18gb",
        share=0.14,
        memory_gb=18,
        memory_share=0.125,
        sms=16,
    )
    found = sliced(H200, part)
    assert found.id == "H200-SXM 1g.18gb"
    assert found.sms == 16
    assert found.bandwidth_gbs == 600
    assert clock_hz(found) == pytest.approx(clock_hz(H200))
    assert evidence_kind(found) == "same"


def test_clock_and_power_slow_a_card() -> None:
    clocked, limited = throttled(H200, clock_mhz=990), throttled(H200, watts=300)
    assert clock_hz(clocked) == pytest.approx(990e6)
    assert step_seconds(H200) < step_seconds(limited) < step_seconds(clocked)
    assert step_seconds(throttled(H200, clock_mhz=4000)) == pytest.approx(
        step_seconds(throttled(H200, clock_mhz=1983)), rel=0.01
    )
    for wrong in ({"clock_mhz": 1}, {"watts": 1}):
        with pytest.raises(BadInput, match="H200-SXM"):
            throttled(H200, **wrong)


@pytest.mark.parametrize("name", ["H200-SXM", "A100-SXM4-80", "H100-PCIe", "A30"])
def test_a_limit_of_the_whole_card_slows_its_slices(name: str) -> None:
    """Clock and power limit belong to the card: a slice has its share of the power."""
    whole = card(name)
    watts = (whole.tdp_watts or 0.0) / 2
    for part in slices_of(whole):
        one = sliced(whole, part)
        limited = throttled(one, watts=watts)
        assert is_slice(one)
        assert is_slice(limited)
        assert is_slice(throttled(one, clock_mhz=900))
        assert limited.tdp_watts == pytest.approx((one.tdp_watts or 0.0) / 2)
        assert step_seconds(limited) > step_seconds(one)
        assert throttled(one, watts=whole.tdp_watts) is one
    assert not is_slice(whole)
    assert not is_slice(throttled(whole, watts=watts))
    with pytest.raises(BadInput, match="too low"):
        throttled(sliced(whole, slices_of(whole)[0]), watts=1)


def test_every_kind_of_evidence_has_a_text_and_an_interval() -> None:
    assert set(EVIDENCE) == {*card_model().doubt, "measured"}
    assert set(card_model().age) == set(card_model().power) == set(CLASSES)
    assert all(card(each).id == each for each in FITTED_CARDS)
    never, seen, fitted = (sum(doubt(card(each))) for each in ("M40", "RTX4090", "RTX5090"))
    assert never > seen > fitted > sum(doubt(H200)) == 0
