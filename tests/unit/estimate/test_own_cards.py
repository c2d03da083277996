"""Slices, throttled cards, added cards, AMD, TPUs and memory limits, as given on the command line."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from teraflock.base.errors import BadInput, TeraflockError
from teraflock.catalog.cards import all_cards, card
from teraflock.catalog.model import Card
from teraflock.catalog.own import EXAMPLE, CardFile, card_from
from teraflock.estimate.answer import answer
from teraflock.estimate.cards import (
    MEASURED_ID,
    USABLE_SHARE,
    is_rocm,
    known_peaks,
    refuses,
    reservable_bytes,
    unsupported,
)
from teraflock.estimate.model import Question
from teraflock.estimate.reach import ECC_SHARE, power_watts
from teraflock.estimate.words import EstimateWords, cards_from, question_from, understood
from teraflock.workload.model import Workload
from teraflock.workload.words import default_optimizer


def tera(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "teraflock", *words], capture_output=True, text=True, check=False
    )


WORKLOAD = Workload(model="resnet18", batch=32, optimizer="sgd")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERA_HOME", str(tmp_path))
    return tmp_path


def test_a_slice_is_found_by_its_name() -> None:
    (found,) = cards_from(["H200 1g.18gb"])
    assert (found.id, found.sms, found.memory_gb) == ("H200-SXM 1g.18gb", 16, 18)
    assert found.usable_memory_mib == 16 * 1024  # as the driver reports it, not an eighth of 140 GiB
    assert cards_from([found.id]) == [found]
    assert [each.id for each in cards_from(["H200"])] == ["H200-SXM"]
    assert {each.id for each in cards_from(["A30 2g.12gb"])} == {"A30 2g.12gb"}
    part, whole = answer(WORKLOAD, Question(cards=[found, card("H200-SXM")])).gpus
    assert part.step_seconds is not None
    assert whole.step_seconds is not None
    assert part.step_seconds.p50 > whole.step_seconds.p50
    assert part.memory_bytes < whole.memory_bytes / 7
    with pytest.raises(TeraflockError, match="no slice") as caught:
        cards_from(["H200 5g.18gb"])
    assert "1g.18gb" in caught.value.hint
    assert cards_from(["H200 1g.18gb+me"]) == [found]  # as the driver writes it: with media engines
    assert cards_from(["NVIDIA H200 MIG 1g.18gb+me.all"]) == [found]
    with pytest.raises(TeraflockError, match="Slices of GH200 are not known"):
        cards_from(["GH200 1g.12gb"])
    with pytest.raises(TeraflockError, match="T4 cannot be divided into slices") as caught:
        cards_from(["T4 1g.5gb"])
    assert "A100" in caught.value.hint


def test_a_wrong_or_missing_key_of_a_card_is_named() -> None:
    with pytest.raises(BadInput, match="Unknown key `tdp`") as caught:
        card_from(f"{EXAMPLE}\ntdp: 300")
    assert "watts" in caught.value.hint
    with pytest.raises(BadInput, match="lacks `generation`, `memory_gb`, `bandwidth_gbs`, `sms`"):
        card_from("name: x")


def test_a_cpu_computes_the_samples_of_all_gpus() -> None:
    one, four = (
        answer(WORKLOAD, Question(cards=[card("H200-SXM")], gpus=gpus, cpu_cores=16, steps=100)).cpu
        for gpus in (1, 4)
    )
    assert one is not None
    assert four is not None
    assert four.samples_per_second == one.samples_per_second
    assert four.step_seconds.p50 == pytest.approx(4 * one.step_seconds.p50)
    assert four.hours is not None
    assert one.hours is not None
    assert four.hours.p50 == pytest.approx(4 * one.hours.p50)


def test_clock_and_power_limit_are_in_the_name() -> None:
    (clocked,), (limited,) = cards_from(["H200"], clock=990), cards_from(["H200"], power_limit=300)
    assert (clocked.id, limited.id) == ("H200-SXM at 990 MHz", "H200-SXM at 300 W")


def test_a_limit_above_what_the_card_has_changes_nothing() -> None:
    assert cards_from(["H200"], clock=9000, power_limit=9000) == [card("H200-SXM")]


def test_a_limit_that_is_too_low_for_some_cards_leaves_the_others() -> None:
    found = {each.id for each in cards_from([], power_limit=100)}
    assert "H200-SXM at 100 W" in found
    assert not any(each.startswith("GB200") for each in found)
    with pytest.raises(BadInput, match="too low for GB200"):
        cards_from(["GB200"], power_limit=100)
    with pytest.raises(BadInput, match="too low for L2: its rated power is 72 W"):
        cards_from(["L2"], power_limit=1)
    with pytest.raises(BadInput, match="greater than 0"):
        cards_from([], power_limit=-1)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_clock_or_power_limit_is_a_positive_number(value: float) -> None:
    for name in ("clock", "power_limit"):
        with pytest.raises(BadInput, match="greater than 0"):
            cards_from(["GH200-144"], **{name: value})  # type: ignore[arg-type]


@given(total=st.integers(4, 40))
def test_samples_of_a_global_batch_are_counted_once(total: int) -> None:
    """Also if they do not divide evenly: five samples on four GPUs are not eight."""
    words = EstimateWords(model="resnet18", global_batch=total, gpus=4, steps=100, gpu=("V100-SXM2",))
    workload, question = understood(words, ())
    found = answer(workload, question)
    (row,) = (each for each in found.gpus if each.gpu == "V100-SXM2")
    assert row.step_seconds is not None
    assert row.samples_per_second == pytest.approx(total / row.step_seconds.p50)
    assert (
        f"{total} samples on 4 GPUs: {'' if total % 4 == 0 else 'at most '}{-(-total // 4)} on each"
        in found.assumptions
    )
    assert found.cpu is not None
    assert found.cpu.samples_per_second == pytest.approx(total / found.cpu.step_seconds.p50)


def test_each_gpu_needs_a_sample_of_the_global_batch() -> None:
    with pytest.raises(BadInput, match="cannot be divided among 8 GPUs"):
        understood(EstimateWords(model="resnet18", global_batch=4, gpus=8), ())
    workload, _ = understood(EstimateWords(model="resnet18", global_batch=100, gpus=8), ())
    assert workload.batch == 13


def test_an_added_card_may_have_its_clock_in_place_of_its_rate() -> None:
    found = card_from(EXAMPLE.replace("fp32_tflops: 40", "clock_mhz: 2500"))
    assert found.fp32_tflops == pytest.approx(2 * 128 * 60 * 2500e6 / 1e12)
    with pytest.raises(BadInput, match="neither"):
        card_from(EXAMPLE.replace("fp32_tflops: 40", ""))


CUDA = [each for each in all_cards() if each.cuda and each.sms and each.fp32_tflops]


@pytest.mark.parametrize("one", CUDA, ids=lambda each: each.id)
def test_a_card_added_with_the_figures_of_a_known_one_is_estimated_like_it(one: Card) -> None:
    there = known_peaks(one)
    assert there is not None
    copied = {each.name for each in fields(CardFile)} - {"name", "generation", "clock_mhz", "watts"}
    figures = {key: getattr(one, key) for key in copied if getattr(one, key) is not None}
    figures |= {"name": "Copy", "watts": power_watts(one)}
    copy = card_from(json.dumps({**figures, "generation": one.architecture}))
    assert copy.compute_capability == one.compute_capability
    if one.id != MEASURED_ID:
        assert known_peaks(copy) == there
    # Without the name of the chip, the figures tell what kind of chip it is.
    plain = known_peaks(card_from(json.dumps({**figures, "generation": one.architecture.split()[0]})))
    assert plain is not None
    assert plain.clock == pytest.approx(there.clock, rel=1e-3)
    assert plain.convolution == pytest.approx(there.convolution)


def test_booleans_are_those_of_yaml() -> None:
    for word, value in (("yes", True), ("No", False), ("true", True), ("off", False)):
        assert card_from(f"{EXAMPLE}\nbf16: {word}").bf16 is value
    with pytest.raises(BadInput, match="`bf16` must be true or false, not `maybe`"):
        card_from(f"{EXAMPLE}\nbf16: maybe")


def test_an_added_card_can_be_estimated_and_removed(tmp_path: Path) -> None:
    file = tmp_path / "card.yaml"
    file.write_text(EXAMPLE)
    assert tera("gpus", "add", str(file)).returncode == 0
    done = tera("estimate", "resnet18", "--batch", "32", "--gpu", "mycard", "--json")
    (row,) = json.loads(done.stdout)["gpus"]
    assert row["gpu"] == "MyCard"
    assert row["step_seconds"]["p50"] > 0
    assert "MyCard" in tera("gpus").stdout
    assert "600 GB/s" in tera("gpus", "MYCARD").stdout
    assert tera("gpus", "remove", "MyCard").returncode == 0
    assert tera("estimate", "resnet18", "--batch", "32", "--gpu", "MyCard").returncode != 0
    assert tera("gpus", "remove", "MyCard").returncode != 0


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "name"),
        ("name", "key: value"),
        ("{", "JSON"),
        (EXAMPLE.replace("Ada", "Voodoo"), "generation"),
        (EXAMPLE.replace("sms: 60", "sms: -1"), "sms"),
        (EXAMPLE + "\nspeed: 9", "speed"),
        (EXAMPLE.replace("24", "much"), "memory_gb"),
        (EXAMPLE + "\nusable_memory_mib: 999999", "more than the memory of 24 GB"),
        (EXAMPLE.replace("sms: 60", "sms: 600000"), "only at 0 MHz"),
        (EXAMPLE.replace("sms: 60", "sms: 1"), "only at 156,250 MHz"),
        (EXAMPLE.replace("MyCard", "all"), "`name` cannot be `all`"),
        (EXAMPLE.replace("MyCard", "NVIDIA"), "`name` cannot be"),
        (EXAMPLE.replace("MyCard", "显卡"), "`name` cannot be"),
    ],
)
def test_a_card_that_cannot_be_read_is_refused_in_one_sentence(text: str, word: str) -> None:
    with pytest.raises(BadInput, match=word):
        card_from(text)


@given(text=st.text(max_size=200))
def test_any_file_content_is_read_or_refused(text: str) -> None:
    with suppress(BadInput):
        card_from(text)


def test_names_of_the_catalog_are_refused_for_added_cards(tmp_path: Path) -> None:
    file = tmp_path / "card.yaml"
    file.write_text(EXAMPLE.replace("MyCard", "RTX 4090"))
    done = tera("gpus", "add", str(file))
    assert done.returncode != 0
    assert "another name" in done.stderr


def test_amd_has_wide_intervals_and_unsupported_cards_give_a_reason() -> None:
    mi300x, v520 = card("MI300X"), card("V520")
    assert is_rocm(mi300x)
    assert not refuses(mi300x, "bf16")
    assert "estimates do not support AMD" in unsupported(v520)
    wide, narrow = (
        answer(Workload(model="resnet50", batch=512, optimizer="sgd"), Question(cards=[each])).gpus[0]
        for each in (mi300x, card("A100-SXM4-80"))
    )
    assert wide.step_seconds is not None
    assert narrow.step_seconds is not None
    assert "not measured" in wide.evidence
    assert wide.largest_batch
    assert (
        wide.step_seconds.p90 / wide.step_seconds.p10
        > 1.5 * narrow.step_seconds.p90 / narrow.step_seconds.p10
    )


def test_a_tpu_is_refused_with_a_clear_message() -> None:
    with pytest.raises(BadInput, match="TPU-v4 cannot be estimated"):
        cards_from(["TPU-v4"])


def test_gb_means_card_memory_and_gib_means_pytorch_memory() -> None:
    labelled, exact = question_from(EstimateWords(model="", memory_limit=("11GB", "11GiB")), cards=()).limits
    assert exact.size_bytes == 11 << 30
    assert labelled.size_bytes in {reservable_bytes(card(each)) for each in ("RTX2080Ti", "GTX1080Ti")}


def test_without_an_optimizer_there_is_no_state_and_no_optimizer_step() -> None:
    bare, adam = (
        answer(
            Workload(model="bert-base", batch=8, seq=128, optimizer=each), Question(cards=[card("H200-SXM")])
        )
        for each in ("none", "adamw")
    )
    assert not bare.memory.breakdown.get("optimizer")
    assert bare.gpus[0].step_seconds is not None
    assert adam.gpus[0].step_seconds is not None
    assert bare.gpus[0].step_seconds.p50 < adam.gpus[0].step_seconds.p50


def test_a_table_uses_the_defaults_of_a_single_estimate(tmp_path: Path) -> None:
    table = tmp_path / "work.csv"
    table.write_text("model,batch,precision,gpu\nbert-large,4,amp-fp16,L4\nresnet18,8,,L4\n")
    many = [json.loads(line) for line in tera("estimate", "--from", str(table)).stdout.splitlines()]
    single = tera(
        "estimate", "bert-large", "--batch", "4", "--precision", "amp-fp16", "--gpu", "L4", "--json"
    )
    assert many[0] == json.loads(single.stdout)
    assert [each["workload"]["optimizer"] for each in many] == ["adamw", "sgd"]
    assert default_optimizer("bert-base", "infer") == ""


@pytest.mark.parametrize(
    "one", [each for each in all_cards() if each.usable_memory_mib], ids=lambda each: each.id
)
def test_memory_assumed_without_a_reading_is_what_the_least_card_without_ecc_has(one: Card) -> None:
    share = (one.usable_memory_mib or 0) / (1024 * one.memory_gb)
    stores_ecc = one.memory_type.startswith("GDDR") and share < ECC_SHARE
    assert stores_ecc or share >= USABLE_SHARE
    assert reservable_bytes(replace(one, usable_memory_mib=None)) <= reservable_bytes(one) or stores_ecc
