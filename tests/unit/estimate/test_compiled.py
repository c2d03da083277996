"""`--compile`: the estimate of a step under `torch.compile`, in every place that answers."""

import json
from pathlib import Path

import pytest
from tests.unit.estimate.test_command import tera

from teraflock.base.errors import BadInput
from teraflock.catalog.cards import card
from teraflock.estimate.answer import answer
from teraflock.estimate.estimator import Estimator
from teraflock.estimate.model import Estimate, Question
from teraflock.estimate.step import OWN
from teraflock.estimate.survey import Survey
from teraflock.workload.model import Workload
from teraflock.workload.trace import write_trace

H200, T4 = card("H200-SXM"), card("T4")


def estimate(
    *, compile: bool, model: str = "resnet18", batch: int = 512, host: str = OWN, **words: object
) -> Estimate:
    words = {"precision": "amp-fp16", "optimizer": "sgd", **words}
    workload = Workload(model=model, batch=batch, compile=compile, **words)  # type: ignore[arg-type]
    return answer(workload, Question(cards=[H200, T4], host=host))


@pytest.mark.parametrize(
    ("words", "milliseconds"),
    [
        ({}, 25.5),
        ({"model": "vgg19", "task": "infer", "precision": "amp-bf16", "optimizer": ""}, 42.2),
        ({"model": "convnext_tiny"}, 113.6),
        ({"model": "llama-1b", "batch": 4, "seq": 1024, "precision": "amp-bf16", "optimizer": "adam"}, 90.3),
        ({"model": "gpt2-large", "batch": 4, "seq": 256, "precision": "fp32", "optimizer": "adamw"}, 148.2),
        ({"model": "resnet34", "batch": 16, "precision": "bf16"}, 11.5),
    ],
)
def test_time_is_near_the_measured_one(words: dict[str, object], milliseconds: float) -> None:
    seconds = estimate(compile=True, **words).gpus[0].step_seconds  # type: ignore[arg-type]
    assert seconds is not None
    assert 1e3 * seconds.p50 == pytest.approx(milliseconds, rel=0.2)
    assert 1e3 * seconds.p10 < milliseconds < 1e3 * seconds.p90


def test_compiling_speeds_up_every_card_and_the_interval_is_wider() -> None:
    for eager, fast in zip(estimate(compile=False).gpus, estimate(compile=True).gpus, strict=True):
        assert eager.step_seconds
        assert fast.step_seconds
        assert fast.step_seconds.p50 < eager.step_seconds.p50
        width = fast.step_seconds.p90 / fast.step_seconds.p10
        assert width > eager.step_seconds.p90 / eager.step_seconds.p10
        assert "torch.compile" in fast.evidence
        assert "torch.compile" not in eager.evidence


def test_the_planner_answers_the_same() -> None:
    workload = Workload(model="gpt2", batch=8, precision="bf16", optimizer="adamw", compile=True)
    survey, answered = Survey(workload), answer(workload, Question(cards=[H200]))
    assert survey.seconds(H200) == answered.gpus[0].step_seconds
    assert survey.fit(H200, 1).fits == answered.gpus[0].fits


def test_accumulated_passes_are_compiled_too() -> None:
    one, three = (estimate(compile=True, accumulate=count).gpus[0].step_seconds for count in (1, 3))
    assert one
    assert three
    assert 2 < three.p50 / one.p50 < 3.2


def test_a_trace_can_be_compiled(tmp_path: Path) -> None:
    file = tmp_path / "job.trace"
    file.write_bytes(write_trace(Estimator(Workload(model="gpt2", batch=2, optimizer="adamw")).trace))
    eager, fast = (
        json.loads(tera("estimate", str(file), "--gpu", "H200", "--json", *more).stdout)
        for more in ([], ["--compile"])
    )
    assert fast["memory"]["live_peak_bytes"] < eager["memory"]["live_peak_bytes"]
    assert fast["workload"]["compile"] is True


def test_a_table_has_a_column_for_it(tmp_path: Path) -> None:
    source = tmp_path / "jobs.csv"
    source.write_text("model,batch,precision,compile,load_in\nresnet18,64,bf16,1,\nresnet18,64,bf16,0,\n")
    done = tera("estimate", "--from", str(source), "--gpu", "H200")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["workload"]["compile"] for line in done.stdout.splitlines()] == [True, False]


def test_serving_refuses_it() -> None:
    done = tera("estimate", "llama-3.2-1b", "--users", "4", "--compile", "--gpu", "H200")
    assert done.returncode == 2
    assert "`--compile` does not apply to serving" in done.stderr


def test_an_empty_batch_is_refused_as_without() -> None:
    with pytest.raises(BadInput, match="at least 1"):
        Estimator(Workload(model="gpt2", batch=0, optimizer="adamw", compile=True))
