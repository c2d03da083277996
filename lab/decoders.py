"""Decoders of `lab/families.py` that are not built like Llama: fused queries, keys and values, parallel layers, ALiBi.

Dropout is as in the published configs of each architecture.
"""

from collections.abc import Callable
from typing import Any

import transformers as hf

from lab.architectures import (
    HEAD,
    HIDDEN,
    INTER,
    POSITIONS,
    PRIMES,
    VOCAB,
    WIDE,
    Architecture,
    decoder,
)

EQUAL = {name: PRIMES[name] for name in ("kv", "head", "inter", "vocab")}
"""Heads divide the hidden state, and each has its own keys."""
ROTARY = 58
"""Rotated elements of a head of 104: 2 * 29, and 2 * 23 are left."""
PARTLY = {
    "kv": (7, 1),
    "head": (13, 8),
    "rotary": (29, 2),
    "rest": (23, 2),
    "inter": (31, 16),
    "vocab": (37, 16),
}
POSITIONED = {**EQUAL, "positions": (31, 16)}
SHARED_KEY = {"group": (17, 1), "joined": (19, 1), "head": (13, 8), "inter": (23, 16), "vocab": (29, 16)}
"""One key for all heads. `joined`: heads of the matrix that makes queries, keys and values."""


def _causal(
    name: str, path: str, primes: dict[str, tuple[int, int]], layers: str = "num_hidden_layers", **words: Any
) -> Architecture:
    model, config = getattr(hf, f"{name}ForCausalLM"), getattr(hf, f"{name}Config")
    return Architecture(lambda depth: model(config(**{layers: depth}, **words)), (path,), primes)


def _learned_positions() -> dict[str, Architecture]:
    def gpt2(layers: int) -> Any:
        return hf.GPT2LMHeadModel(
            hf.GPT2Config(
                n_embd=WIDE, n_head=7, n_inner=INTER, vocab_size=VOCAB, n_positions=POSITIONS, n_layer=layers
            )
        )

    bigcode: dict[str, Any] = {
        "n_embd": 17 * HEAD, "n_head": 17, "n_inner": INTER, "vocab_size": VOCAB, "n_positions": POSITIONS,
    }  # fmt: skip
    opt: dict[str, Any] = {
        "hidden_size": WIDE, "ffn_dim": INTER, "num_attention_heads": 7, "vocab_size": VOCAB,
        "max_position_embeddings": POSITIONS - 2,  # two rows more than positions
    }  # fmt: skip
    return {
        "gpt2": Architecture(gpt2, ("transformer.h",), POSITIONED),
        "gpt_bigcode": Architecture(
            lambda layers: hf.GPTBigCodeForCausalLM(hf.GPTBigCodeConfig(n_layer=layers, **bigcode)),
            ("transformer.h",),
            {**SHARED_KEY, "positions": (31, 16)},
        ),
        "opt": _causal("OPT", "model.decoder.layers", POSITIONED, word_embed_proj_dim=WIDE, **opt),
        "opt-projected": _causal(
            "OPT", "model.decoder.layers", {**POSITIONED, "outer": (19, 16)}, word_embed_proj_dim=HIDDEN,
            do_layer_norm_before=False, **opt,
        ),
    }  # fmt: skip


def _partly_rotated() -> dict[str, Architecture]:
    words: dict[str, Any] = {
        "hidden_size": WIDE, "intermediate_size": 16 * 31, "num_attention_heads": 7, "vocab_size": 16 * 37,
        "max_position_embeddings": 4096,
        "rope_parameters": {
            "rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": (ROTARY + 0.25) / HEAD,
        },
    }  # fmt: skip
    stable: dict[str, Any] = {**words, "num_key_value_heads": 7}
    wide: dict[str, Any] = {**words, "hidden_size": 7 * 2 * HEAD}  # heads wider than cuDNN's attention takes
    return {
        "gpt_neox": _causal("GPTNeoX", "gpt_neox.layers", PARTLY, **words),
        "gpt_neox-wide": _causal(
            "GPTNeoX",
            "gpt_neox.layers",
            {**PARTLY, "head": (13, 16), "rotary": (29, 4), "rest": (23, 4)},
            **wide,
        ),
        "stablelm": _causal("StableLm", "model.layers", PARTLY, **stable),
        "stablelm-biased": _causal("StableLm", "model.layers", PARTLY, use_qkv_bias=True, **stable),
    }


def _fused() -> dict[str, Architecture]:
    falcon: dict[str, Any] = {"vocab_size": VOCAB, "max_position_embeddings": 4096, "ffn_hidden_size": INTER}
    return {
        "falcon": _causal(
            "Falcon", "transformer.h", SHARED_KEY, hidden_size=17 * HEAD, num_attention_heads=17, **falcon
        ),
        "falcon-gqa": _causal(
            "Falcon", "transformer.h", {**EQUAL, "kv": (11, 1), "group": (5, 1), "joined": (7, 1)},
            hidden_size=55 * HEAD, num_attention_heads=55, num_kv_heads=11, new_decoder_architecture=True, **falcon,
        ),
        "bloom": _causal(
            "Bloom", "transformer.h", {name: PRIMES[name] for name in ("kv", "head", "vocab")}, "n_layer",
            hidden_size=WIDE, n_head=7, vocab_size=VOCAB,
        ),
    }  # fmt: skip


def _like_llama() -> dict[str, Architecture]:
    """Widths as Llama's, but with other norms, biases or factors."""
    drop = {"attention_dropout": 0.1, "residual_dropout": 0.1, "embedding_dropout": 0.1}
    kinds: dict[str, tuple[str, dict[str, Any], tuple[tuple[bool, bool], ...]]] = {
        "olmo": ("Olmo", {}, ((False, False), (True, False))),
        "olmo2": ("Olmo2", {}, ((False, False), (False, True))),
        "granite": ("Granite", {}, ((True, True), (False, True))),
        "starcoder2": ("Starcoder2", drop, ((True, True), (False, True))),
        "cohere": ("Cohere", {}, ((True, False), (True, True))),
        "cohere-normed": ("Cohere", {"use_qk_norm": True}, ((True, True),)),
    }
    found = {}
    for kind, (name, words, pairs) in kinds.items():
        model, config = getattr(hf, f"{name}ForCausalLM"), getattr(hf, f"{name}Config")
        for tied, grouped in pairs:
            full = f"{kind}{'-tied' * tied}{'-gqa' * grouped}"
            found[full] = decoder(model, config, tied=tied, grouped=grouped, **words)
    return found


def decoders() -> dict[str, Architecture]:
    groups: tuple[Callable[[], dict[str, Architecture]], ...] = (
        _learned_positions,
        _partly_rotated,
        _fused,
        _like_llama,
    )
    return {name: each for group in groups for name, each in group().items()}
