"""The zoo: every name has its recordings, with the parameter counts of the originals."""

from math import prod

import pytest

from teraflock.base.errors import BadInput, UnknownName
from teraflock.workload.expression import evaluate_all
from teraflock.workload.model import Workload, checked
from teraflock.workload.zoo import ENTRIES, entry, symbols_for, trace_for, with_sizes

PARAMETERS = {
    "alexnet": 61_100_840, "vgg11": 132_863_336, "vgg16": 138_357_544, "vgg19": 143_667_240, "resnet18": 11_689_512,
    "resnet50": 25_557_032, "resnet152": 60_192_808, "resnext50_32x4d": 25_028_904, "wide_resnet50_2": 68_883_240,
    "densenet121": 7_978_856, "inception_v3": 23_834_568, "googlenet": 6_624_904, "mobilenet_v2": 3_504_872,
    "mobilenet_v3_large": 5_483_032, "efficientnet_b0": 5_288_548, "efficientnet_b4": 19_341_616,
    "convnext_tiny": 28_589_128, "convnext_base": 88_591_464, "vit_b_16": 86_567_656, "vit_l_16": 304_326_632,
    "swin_t": 28_288_354, "regnet_y_8gf": 39_381_472, "squeezenet1_0": 1_248_424, "shufflenet_v2_x1_0": 2_278_604,
    "bert-base": 109_514_298, "bert-large": 335_174_458, "roberta-base": 124_697_433, "distilbert": 66_985_530,
    "gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200,
    "t5-base": 222_903_552, "llama-1b": 1_235_814_400, "llama-3b": 3_212_749_824, "llama-8b": 8_030_261_248,
    "qwen2-0.5b": 494_032_768, "opt-1.3b": 1_315_758_080, "dcgan": 6_342_272, "biggan-128": 158_416_358,
    "unet-diffusion-sd15": 859_520_964, "unet-diffusion-sdxl": 2_567_463_684, "resnet34": 21_797_672,
    "resnet101": 44_549_160, "yolov8n": 3_157_200, "yolov8s": 11_166_560,
}  # fmt: skip


def workload(model: str, **more: object) -> Workload:
    fields = {"model": model, "batch": 2, "optimizer": "sgd", **more}
    return with_sizes(Workload(**fields))  # type: ignore[arg-type]


def test_every_name_of_the_zoo_is_counted() -> None:
    assert set(ENTRIES) == set(PARAMETERS)


@pytest.mark.parametrize("model", sorted(PARAMETERS))
@pytest.mark.parametrize("precision", ["fp32", "amp-bf16", "bf16"])
def test_parameters_are_those_of_the_original(model: str, precision: str) -> None:
    asked = workload(model, precision=precision)
    trace = trace_for(asked)
    sizes = evaluate_all(trace.expressions, symbols_for(asked, trace))
    assert sum(prod(sizes[i] for i in p.shape) for p in trace.parameters) == PARAMETERS[model]


@pytest.mark.parametrize("model", sorted(PARAMETERS))
def test_the_batch_is_a_symbol_of_every_recording(model: str) -> None:
    trace = trace_for(workload(model))
    assert "batch" in trace.symbols
    assert "'batch'" in str(trace.expressions)


def test_names_are_found_however_they_are_written() -> None:
    assert entry("BERT_base").name == "bert-base"
    assert entry("vit-b-16").name == "vit_b_16"
    with pytest.raises(UnknownName) as error:
        entry("resnet51")
    assert "resnet50" in error.value.hint


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "resnet50", "batch": 0},
        {"model": "bert-base", "batch": 1, "seq": 513},
        {"model": "bert-base", "batch": 1, "image_size": 224},
        {"model": "resnet50", "batch": 1, "seq": 10},
        {"model": "resnet50", "batch": 1, "precision": "int8"},
        {"model": "resnet50", "batch": 1, "lora_rank": 16},
        {"model": "swin_t", "batch": 1, "image_size": 256},
        {"model": "vit_b_16", "batch": 1, "image_size": 230},
        {"model": "alexnet", "batch": 1, "image_size": 62},
        {"model": "inception_v3", "batch": 1, "image_size": 74},
        {"model": "gpt2", "batch": 1, "kv_cache": True},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        trace_for(with_sizes(checked(Workload(**{"optimizer": "sgd", **wrong}))))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["sd-1.5", "sd1.5", "stable-diffusion-1.5", "stable-diffusion-xl", "sdxl"])
def test_diffusion_models_have_the_names_that_people_use(name: str) -> None:
    assert entry(name).name.startswith("unet-diffusion-sd")


def test_a_variant_that_was_not_recorded_names_the_precisions_that_were() -> None:
    quantized = Workload(
        model="llama-3.1-70b", batch=1, seq=512, precision="fp32", lora_rank=16, load_in="4bit"
    )
    with pytest.raises(BadInput) as refused:
        trace_for(quantized)
    assert refused.value.hint == "Use `--precision amp-bf16` or `--precision bf16`"
