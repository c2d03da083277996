"""What cards are good for, and filters on their figures."""

from datetime import date

import pytest

from teraflock.base.errors import BadInput, UnknownName
from teraflock.catalog.cards import all_cards, card, families
from teraflock.catalog.figures import CardNeeds, cards_meeting, codec_named
from teraflock.catalog.providers import all_providers
from teraflock.catalog.purpose import PURPOSES, good_for, verdict
from teraflock.catalog.series import all_series, series_of_card, series_of_provider
from teraflock.offer.words import OfferWords, query_from

ON = date(2026, 11, 15)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_every_card_has_a_verdict_with_a_reason(purpose: str) -> None:
    for each in all_cards():
        found = verdict(each, next(p for p in PURPOSES if p == purpose))
        assert found.reason
        assert not found.reason.endswith(".")


def test_verdicts_follow_published_advice() -> None:
    assert verdict(card("K80"), "training").fit == "avoid"
    assert "PyTorch 2" in verdict(card("K80"), "training").reason
    large = {each.id: verdict(each, "large-training").fit for each in all_cards()}
    assert {large[name] for name in ("A100-SXM4-80", "V100-SXM2", "H100-SXM5", "H200-SXM")} == {"first"}
    assert large["P100-PCIe"] == "suitable"
    assert {large[name] for name in ("A4000", "RTX4090", "T4")} == {"avoid"}
    assert {verdict(card(name), "training").fit for name in ("A4000", "A5000", "A6000")} == {"first"}
    assert verdict(card("P100-PCIe"), "hpc").fit == "first"
    assert verdict(card("P4"), "inference").reason == "INT8 22 TOPS at 75 W"
    assert "video" not in good_for(card("A100-SXM4-80"))
    assert "rendering" in good_for(card("L40S"))


def test_conditions_on_figures_select_cards() -> None:
    fast64 = cards_meeting(CardNeeds(fp64_min=5), all_cards())
    assert {"V100-SXM2", "A100-SXM4-80", "H100-SXM5"} <= set(fast64)
    assert not {"T4", "RTX4090", "P40"} & set(fast64)
    av1 = cards_meeting(CardNeeds(encodes=codec_named("av1")), all_cards())
    assert "L4" in av1
    assert "T4" not in av1
    assert "T4" in cards_meeting(CardNeeds(encodes=codec_named("h265")), all_cards())
    with pytest.raises(UnknownName):
        codec_named("VP9")


def test_an_unknown_figure_passes_no_filter() -> None:
    assert card("GB300").int8_tops is None
    assert "GB300" not in cards_meeting(CardNeeds(int8_min=0), all_cards())
    assert "M40" not in cards_meeting(CardNeeds(graphics=True), all_cards())


def test_conditions_narrow_the_named_cards() -> None:
    asked = OfferWords(gpu=("P100", "T4"), fp64_min="4")
    assert set(query_from(asked, list, ON).gpus) == {"P100-PCIe", "P100-SXM2", "P100-PCIe-12"}
    with pytest.raises(BadInput, match="No requested GPU model meets"):
        query_from(OfferWords(gpu=("T4",), fp64_min="4"), list, ON)
    with pytest.raises(BadInput, match="No known GPU model meets"):
        query_from(OfferWords(fp64_min="5000"), list, ON)
    with pytest.raises(BadInput, match="not a number of TFLOPS"):
        query_from(OfferWords(fp64_min="lots"), list, ON)


def test_every_series_names_a_known_provider_and_card() -> None:
    known = {each.id for each in all_providers()}
    for each in all_series():
        assert each.provider in known
        assert each.gpus in families()
        assert each.purpose
    assert [each.series for each in series_of_provider("alibaba")] == ["GA1", "GN4", "GN5", "GN5i", "GN6"]
    assert "azure ND" in _sold_as("P40")
    assert "not confirmed" in series_of_provider("tencent")[0].text


def test_cards_are_sold_in_series_of_their_own_memory_size() -> None:
    small, large = _sold_as("A100-SXM4-40"), _sold_as("A100-SXM4-80")
    assert {"aws P4d", "oci BM.GPU4"} <= small - large
    assert {"aws P4de", "oci BM.GPU.A100-v2"} <= large - small
    assert "gcp A2" in small & large


def _sold_as(gpu: str) -> set[str]:
    return {f"{each.provider} {each.series}" for each in series_of_card(card(gpu))}
