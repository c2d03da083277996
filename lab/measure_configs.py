"""Measures models by config on a GPU: `python -m lab.measure_configs OUT`.

Training steps of the families that are known by config, with and without gradient accumulation, and decoding with a KV
cache under a CUDA graph. One JSON line for each: live and reserved peak in bytes, and seconds. Needs PyTorch and
transformers. No weights: models come from their configs.
"""

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import transformers as hf

CONFIGS = json.loads(Path("src/teraflock/workload/data/configs.json").read_text())
AUTO = {
    "bert": hf.BertForMaskedLM, "roberta": hf.RobertaForMaskedLM, "xlm-roberta": hf.XLMRobertaForMaskedLM,
    "distilbert": hf.DistilBertForMaskedLM, "vit": hf.ViTForImageClassification, "clip": hf.CLIPModel,
    "t5": hf.T5ForConditionalGeneration, "bart": hf.BartForConditionalGeneration,
    "whisper": hf.WhisperForConditionalGeneration,
}  # fmt: skip


def made(name: str, dtype: Any, **more: Any) -> Any:
    words = {**CONFIGS[name], **more}
    kind = words.pop("model_type")
    config = hf.AutoConfig.for_model(kind, **words)
    config.use_cache = False
    torch.set_default_dtype(dtype)
    try:
        with torch.device("cuda"):
            return AUTO[kind](config) if kind in AUTO else hf.AutoModelForCausalLM.from_config(config)
    finally:
        torch.set_default_dtype(torch.float32)


def trained(case: dict[str, Any]) -> dict[str, Any]:
    """Steps of training, with gradients accumulated over so many passes."""
    dtype = {"bf16": torch.bfloat16}.get(case["precision"], torch.float32)
    net = made(case["model"], dtype, **case.get("more", {})).train()
    optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
    words = _inputs(net, case, dtype)
    accumulate = case["accumulate"]
    context = torch.autocast("cuda", torch.bfloat16, enabled=case["precision"] == "amp-bf16")

    def step() -> None:
        for _ in range(accumulate):
            with context:
                loss = net(**words).loss
            (loss / accumulate).backward()
        optimizer.step()
        optimizer.zero_grad()

    return measured(step, 5)


def _inputs(net: Any, case: dict[str, Any], dtype: Any) -> dict[str, Any]:
    config, batch = net.config, case["batch"]
    kind, seq = config.model_type, case.get("seq", 0)
    ids = torch.randint(5, 1000, (batch, seq or 1), device="cuda")
    if kind == "vit":
        side = config.image_size
        pixels = torch.randn(batch, 3, side, side, device="cuda", dtype=dtype)
        return {"pixel_values": pixels, "labels": torch.zeros(batch, dtype=torch.int64, device="cuda")}
    if kind == "clip":
        side = config.vision_config.image_size
        pixels = torch.randn(batch, 3, side, side, device="cuda", dtype=dtype)
        return {"input_ids": ids, "pixel_values": pixels, "return_loss": True}
    if kind == "whisper":
        sound = torch.randn(batch, config.num_mel_bins, 3000, device="cuda", dtype=dtype)
        return {"input_features": sound, "labels": ids}
    return {"input_ids": ids, "labels": ids}


def measured(step: Any, steps: int) -> dict[str, Any]:
    for _ in range(2):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return {
        "seconds": sorted(times)[len(times) // 2],
        "live": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
    }


def served(case: dict[str, Any]) -> dict[str, Any]:
    """One token for each user with keys and values in a cache, under a CUDA graph; and the prefill of one prompt."""
    net = made(case["model"], torch.bfloat16).eval()
    config, users, context = net.config, case["users"], case["context"]
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    shape = (config.num_hidden_layers, 2, users, config.num_key_value_heads, context, head)
    cache = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    place = torch.tensor([context - 1], device="cuda")
    ids = torch.randint(5, 1000, (users, 1), device="cuda")
    where = place.expand(users, 1)
    token = _token(net, cache, place, ids, where)
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                token()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            token()
        found = measured(graph.replay, 20)
        if case.get("prefill"):
            prompt = torch.randint(5, 1000, (1, context), device="cuda")
            found["prefill"] = measured(lambda: net.model(prompt), 5)["seconds"]
    return found


def _token(net: Any, cache: Any, place: Any, ids: Any, where: Any) -> Any:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    inner = net.model

    def attend(layer: Any, number: int, x: Any, turn: Any) -> Any:
        attention = layer.self_attn
        users = x.shape[0]
        query, key, value = (
            each(x).view(users, 1, -1, cache.shape[-1])
            for each in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        if hasattr(attention, "q_norm"):
            query, key = attention.q_norm(query), attention.k_norm(key)
        query, key, value = (each.transpose(1, 2) for each in (query, key, value))
        query, key = apply_rotary_pos_emb(query, key, *turn)
        cache[number, 0].index_copy_(2, place, key)
        cache[number, 1].index_copy_(2, place, value)
        out = torch.nn.functional.scaled_dot_product_attention(
            query, cache[number, 0], cache[number, 1], enable_gqa=True
        )
        return attention.o_proj(out.transpose(1, 2).reshape(users, 1, -1))

    def token() -> Any:
        x = inner.embed_tokens(ids)
        turn = inner.rotary_emb(x, where)
        for number, layer in enumerate(inner.layers):
            x = x + attend(layer, number, layer.input_layernorm(x), turn)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return net.lm_head(inner.norm(x)).argmax(-1)

    return token


SMALL = {"num_hidden_layers": 4}
TRAINED: list[tuple[str, str, int, int, dict[str, int]]] = [
    ("bert-large-uncased", "amp-bf16", 16, 512, {}),
    ("bert-base-uncased", "fp32", 32, 128, {}),
    ("vit-large-patch16-224", "amp-bf16", 64, 0, {}),
    ("clip-vit-base-patch32", "amp-bf16", 128, 77, {}),
    ("bart-large", "amp-bf16", 8, 512, {}),
    ("whisper-small", "amp-bf16", 16, 128, {}),
    ("gemma-2b", "bf16", 2, 1024, {}),
    ("gemma-2-2b", "bf16", 2, 1024, {}),
    ("gemma-2-2b", "amp-bf16", 1, 512, {}),
    ("phi-2", "bf16", 2, 1024, {}),
    ("phi-3-mini", "bf16", 2, 1024, {}),
    ("mixtral-8x7b", "bf16", 2, 1024, SMALL),
    ("mixtral-8x7b", "amp-bf16", 1, 512, SMALL),
]
SERVED = (
    "llama-3.2-1b", "llama-3.1-8b", "qwen2.5-7b", "qwen2.5-0.5b", "llama-3.2-3b", "qwen3-8b", "mistral-nemo-12b",
    "qwen3-1.7b",
)  # fmt: skip
LOADS = ((1, 512), (1, 8192), (8, 2048), (16, 4096), (64, 1024), (32, 8192), (128, 512))
"""Users and context."""


def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"model": model, "users": users, "context": context, "prefill": users <= 8}
        for model in SERVED
        for users, context in LOADS
    ]
    for model, precision, batch, seq, more in TRAINED:
        case = {"model": model, "precision": precision, "batch": batch, "seq": seq, "more": more}
        found += [{**case, "accumulate": accumulate} for accumulate in (1, 3)]
    return found


def main() -> None:
    hf.logging.set_verbosity_error()
    with Path(sys.argv[1]).open("w") as out:
        for case in cases():
            start = time.perf_counter()
            try:
                found = served(case) if "users" in case else trained(case)
            except Exception as error:  # one that fails must not hide the others
                found = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
            gc.collect()
            torch.cuda.empty_cache()
            line = json.dumps({**case, **found})
            print(f"{time.perf_counter() - start:.1f} s {line}", flush=True)
            out.write(line + "\n")
            out.flush()


if __name__ == "__main__":
    main()
