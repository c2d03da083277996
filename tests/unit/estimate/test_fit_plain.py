"""Convolutions in plain fp32: the fit finds a law, and the shipped numbers say what an H200 with TF32 off showed."""

from math import exp, log, log2

from lab.fit_plain import REFERENCE, PlainConvolution, fit
from msgspec.structs import replace

from teraflock.catalog.cards import card
from teraflock.estimate.bounds import card_model
from teraflock.estimate.cards import peaks
from teraflock.estimate.operation import Work, work
from teraflock.estimate.reach import fitted
from teraflock.estimate.scaled import Scaled, plain_share
from teraflock.estimate.speed import PEAKS_H200

USUAL = 1.3
"""An H200 takes this many times as long as the curve says, whatever the family."""


def convolution(
    channels: int, *, groups: int = 1, backward: bool = False, side: int = 56, batch: int = 256
) -> Work:
    images = ("f", [batch, channels, side, side], True)
    kernel = 3 if groups > 1 else 1
    weight = ("f", [channels, channels // groups, kernel, kernel], True)
    attributes = [1, kernel // 2, 1, 0, groups]
    if backward:
        return work(
            "convolution_backward", [images, images, weight], [images, weight], [*attributes, 1, 1, 0]
        )
    return work("convolution", [images, weight], [images], attributes)


def test_the_fit_finds_how_families_differ_from_forward_passes() -> None:
    bare, rows = replace(card_model(), plain={}), []
    for channels in (256, 320, 512, 640, 1024):
        for backward, factor in ((False, 1.0), (True, 1.6)):
            one = convolution(channels, backward=backward)
            curve = one.flops * plain_share(one, fitted(), bare) / PEAKS_H200.fp32
            rows.append(PlainConvolution(one, USUAL * factor * curve))
            grouped = convolution(channels, groups=32, backward=backward)
            wasted = factor * 8 * (grouped.dims[2] / 64) ** -0.5
            rows.append(PlainConvolution(grouped, USUAL * wasted * grouped.flops / PEAKS_H200.fp32))
            # A bad choice of cuDNN's heuristics for one batch says nothing about the layer.
            again = convolution(channels, groups=32, backward=backward, batch=64)
            rows.append(PlainConvolution(again, 20 * wasted * again.flops / PEAKS_H200.fp32))
    found = fit(rows, bare)
    assert set(found.plain) == {"convb:plain:1"}
    assert abs(found.plain["convb:plain:1"] - log(1.6)) < 0.01
    for way, factor in (("f", 1.0), ("b", 1.6)):
        start, slope = found.grouped[way]
        assert abs(exp(start + slope * log2(64)) / (8 * factor) - 1) < 0.02
        assert abs(slope + 0.5 * log(2)) < 0.01


def test_narrow_groups_and_backward_passes_are_slower_without_tensor_cores() -> None:
    model, reach = card_model(), fitted()
    assert REFERENCE not in model.plain
    narrow, wide = (convolution(channels, groups=32) for channels in (128, 1024))
    assert plain_share(narrow, reach, model) > 2 * plain_share(wide, reach, model) > 1
    forward, backward = (convolution(256, backward=each) for each in (False, True))
    assert plain_share(backward, reach, model) > 1.2 * plain_share(forward, reach, model)


def test_a_convolution_over_single_pixels_takes_no_less_than_on_the_h200() -> None:
    """Squeeze-and-excitation: its arithmetic is nothing, and its time is latency on every GPU."""
    one, seconds = convolution(64, side=1, batch=32), 30e-6
    there = peaks(card("GTX1080"))
    assert there is not None
    assert Scaled([(one, 1, seconds)], tf32=False).seconds_on(there) >= seconds
