"""Serving: decoding as measured on an H200, memory by arithmetic, and what is refused."""

import json
from statistics import median

import pytest
from click.testing import CliRunner

from teraflock.base.errors import BadInput
from teraflock.catalog.cards import cards_by_id
from teraflock.cli.estimate.command import command
from teraflock.estimate.serving import Load, serve
from teraflock.workload.model import Workload

H200 = cards_by_id()["H200-SXM"]
# Held out of the fit: model, users, context, milliseconds a token (lab/measured/serve.csv).
HELD_OUT = [
    ("qwen2.5-0.5b", 1, 512, 2.5234),
    ("qwen2.5-0.5b", 32, 8192, 3.6234),
    ("llama-3.2-3b", 8, 2048, 5.3771),
    ("llama-3.2-3b", 128, 512, 7.333),
    ("qwen3-8b", 1, 8192, 8.6498),
    ("qwen3-8b", 32, 8192, 17.985),
    ("qwen3-1.7b", 16, 4096, 6.6085),
    ("qwen3-1.7b", 64, 1024, 6.8147),
]


def served(model: str, users: int, context: int, precision: str = "bf16"):  # type: ignore[no-untyped-def]
    return serve(
        Workload(model=model, batch=1, precision=precision), Load(users=users, context=context), [H200]
    )


def test_decoding_of_held_out_models_is_as_measured() -> None:
    off = []
    for model, users, context, milliseconds in HELD_OUT:
        row = served(model, users, context).gpus[0]
        off.append(abs(row.token_seconds.p50 * 1e3 / milliseconds - 1))
        assert row.tokens_per_second == pytest.approx(users * row.tokens_per_second_per_user)
    assert median(off) < 0.06
    assert max(off) < 0.2


def test_memory_is_weights_cache_and_one_prompt() -> None:
    found = served("llama-3.1-8b", 16, 8192)
    assert found.kv_cache_bytes == 16 * 8192 * 2 * 32 * 8 * 128 * 2
    assert found.weights_bytes == pytest.approx(2 * 8_030_261_248, rel=0.001)
    row = found.gpus[0]
    assert row.need_bytes > found.weights_bytes + found.kv_cache_bytes
    # Logits of the whole prompt would take 2.1 GB more.
    assert row.need_bytes < found.weights_bytes + found.kv_cache_bytes + 1_500_000_000


def test_as_many_users_fit_as_it_says() -> None:
    most = served("llama-3.1-8b", 1, 8192).gpus[0].users_max
    assert served("llama-3.1-8b", most, 8192).gpus[0].fits
    assert not served("llama-3.1-8b", most + 1, 8192).gpus[0].fits


def test_prefill_grows_with_the_prompt() -> None:
    first = [served("llama-3.1-8b", 1, each).gpus[0].first_token_seconds.p50 for each in (2048, 8192)]
    assert first[1] / first[0] > 3
    assert first[1] * 1e3 == pytest.approx(219.8, rel=0.25)


@pytest.mark.parametrize(
    ("model", "users", "context", "precision", "says"),
    [
        ("llama-3.1-8b", 0, 512, "bf16", "`--users`"),
        ("llama-3.1-8b", 1, 1 << 20, "bf16", "131,072 positions"),
        ("llama-3.1-8b", 1, 512, "fp32", "bf16 and fp16"),
        ("bert-base-uncased", 1, 512, "bf16", "decoders"),
        ("flan-t5-base", 1, 512, "bf16", "decoders"),
        ("resnet50", 1, 512, "bf16", "decoders"),
    ],
)
def test_what_cannot_be_served_is_refused(
    model: str, users: int, context: int, precision: str, says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        served(model, users, context, precision)


def test_command_answers_as_json_and_refuses_words_of_training() -> None:
    words = ["llama-3.2-1b", "--users", "4", "--context", "1024", "--gpu", "H200-SXM"]
    done = CliRunner().invoke(command, [*words, "--json"])
    assert done.exit_code == 0, done.output
    row = json.loads(done.stdout)["gpus"][0]
    assert row["fits"] is True
    assert row["tokens_per_second"] > row["tokens_per_second_per_user"] > 0
    refused = CliRunner().invoke(command, [*words, "--lora-rank", "8"])
    assert isinstance(refused.exception, BadInput)
    assert "`--lora-rank` does not apply to serving" in refused.exception.sentence
