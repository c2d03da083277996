"""Every model that ships as a config has as many parameters as transformers builds from the same config.

Needs PyTorch and transformers: models are built on the `meta` device, without weights.
"""

import os
from math import prod

import pytest
from tests.corpus.declared import sitecustomize as _operators  # noqa: F401 -- before torchvision is imported

from teraflock.workload import zoo
from teraflock.workload.config import named
from teraflock.workload.expression import evaluate_all
from teraflock.workload.model import Workload

torch = pytest.importorskip("torch", reason="PyTorch is not installed: `make corpus` runs these")
hf = pytest.importorskip("transformers", reason="transformers is not installed: `make corpus` runs these")

QUICK = frozenset(
    {"bert-base-uncased", "clip-vit-base-patch32", "whisper-tiny", "flan-t5-small", "qwen3-30b-a3b"}
)
HEADS = {
    "bert": "BertForMaskedLM",
    "roberta": "RobertaForMaskedLM",
    "xlm-roberta": "XLMRobertaForMaskedLM",
    "distilbert": "DistilBertForMaskedLM",
    "vit": "ViTForImageClassification",
    "clip": "CLIPModel",
    "t5": "T5ForConditionalGeneration",
    "bart": "BartForConditionalGeneration",
    "whisper": "WhisperForConditionalGeneration",
}


def built(name: str) -> int:
    words = dict(named()[name])
    kind = words.pop("model_type")
    config = hf.AutoConfig.for_model(kind, **words)
    with torch.device("meta"):
        make = getattr(hf, HEADS[kind]) if kind in HEADS else hf.AutoModelForCausalLM.from_config
        net = make(config)
    count: int = sum(each.numel() for each in net.parameters())
    if kind == "t5" and not words["tie_word_embeddings"] and net.lm_head.weight is net.shared.weight:
        # transformers 5 ties the head of every T5; in the published weights of T5 1.1 and Flan it is apart.
        count += net.lm_head.weight.numel()
    return count


def estimated(name: str) -> int:
    workload = zoo.with_sizes(Workload(model=name, batch=1, task="infer", precision="bf16"))
    trace = zoo.trace_for(workload)
    sizes = evaluate_all(trace.expressions, zoo.symbols_for(workload, trace))
    return sum(prod(sizes[index] for index in each.shape) for each in trace.parameters)


@pytest.mark.parametrize("name", sorted(named()))
def test_a_config_has_as_many_parameters_as_transformers_builds(name: str) -> None:
    if name not in QUICK and os.environ.get("TERA_CORPUS") != "all":
        pytest.skip("`make corpus` runs the whole corpus")
    assert estimated(name) == built(name)
