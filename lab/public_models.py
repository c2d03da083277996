"""Records what public tables measured and the zoo does not have: `python -m lab.public_models FOLDER`.

Further torchvision classifiers, and BERT as it was fine-tuned for question answering before PyTorch had fused
attention. Only `lab/fit_cards.py` reads these traces. Needs PyTorch (CPU), torchvision and transformers.
"""

import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from lab.record import HALF, Variant, build_vision, record
from teraflock.workload.trace import write_trace
from teraflock.workload.tracing.eager import transformers_eager

CLASSIFIERS = [
    "densenet161",
    "densenet169",
    "densenet201",
    "mnasnet0_5",
    "mnasnet0_75",
    "mnasnet1_0",
    "mnasnet1_3",
    "resnet34",
    "resnet101",
    "resnext101_32x8d",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0",
    "squeezenet1_1",
    "vgg11_bn",
    "vgg13",
    "vgg13_bn",
    "vgg16_bn",
    "vgg19_bn",
    "wide_resnet101_2",
]
BERT_LARGE = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}
BERTS: dict[str, dict[str, int]] = {"bert-base": {}, "bert-large": BERT_LARGE}
IMAGE_VARIANTS = ("train+fp32", "infer+fp32", "train+bf16", "infer+bf16")
TEXT_VARIANTS = ("train+fp32", "train+bf16")
PIXELS = 224


def _classifier(name: str) -> Any:
    import torchvision

    return build_vision(lambda image: torchvision.models.get_model(name, weights=None), PIXELS)


def _question_answering(sizes: dict[str, int]) -> Any:
    def build(variant: Variant, symbols: dict[str, Any]) -> Any:
        import transformers

        torch.set_default_dtype(HALF.get(variant.precision, torch.float32))
        try:
            config = transformers.BertConfig(**sizes)
            net = transformers.BertForQuestionAnswering._from_config(config, attn_implementation="eager")
        finally:
            torch.set_default_dtype(torch.float32)
        ids = torch.randint(0, 20000, (symbols["batch"], symbols["seq"]))
        spot = torch.randint(0, 100, (symbols["batch"],))
        return net, lambda: net(input_ids=ids, start_positions=spot, end_positions=spot).loss, [ids, spot]

    return build


def _jobs() -> Iterator[tuple[str, str, Any, dict[str, int]]]:
    for name, sizes in BERTS.items():
        for text in TEXT_VARIANTS:
            yield f"{name}-qa", text, _question_answering(sizes), {"batch": 6, "seq": 112}
    for name in CLASSIFIERS:
        for text in IMAGE_VARIANTS:
            yield name, text, _classifier(name), {"batch": 6}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text, build, hints in _jobs():
        with transformers_eager():
            (folder / f"{name}+{text}.trace").write_bytes(
                write_trace(record(name, Variant(text), build, hints))
            )
        print(name, text, flush=True)


if __name__ == "__main__":
    main()
