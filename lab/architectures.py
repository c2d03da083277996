"""The families of `lab/families.py`: one small model of each, with widths that share no prime factor.

`primes` says which prime factor stands for which width: a size of the trace that holds it is read as a product of that
width. `(13, 8)` means that the width was 8 · 13 while recording.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import transformers as hf

KV, GROUP, HEAD, HIDDEN, INTER, VOCAB = 7, 5, 8 * 13, 16 * 19, 16 * 23, 16 * 29
PRIMES = {
    "kv": (7, 1),
    "group": (5, 1),
    "head": (13, 8),
    "hidden": (19, 16),
    "inter": (23, 16),
    "vocab": (29, 16),
}
POSITIONS = 16 * 31
WIDE = KV * HEAD
TEXT, SPEECH, IMAGE, PAIRS = "text", "speech", "image", "pairs"


def _primes(*names: str) -> dict[str, tuple[int, int]]:
    return {name: PRIMES[name] for name in names}


class Architecture(NamedTuple):
    make: Callable[[int], Any]
    """A model with so many layers in each stack."""
    stacks: tuple[str, ...]
    primes: dict[str, tuple[int, int]]
    reads: str = TEXT


def built(model: Any, config: Any, hidden: int = 0) -> Any:
    if hidden:
        config.hidden_size = hidden  # afterwards: some configs want a multiple of the heads
    return model(config)


def decoder(
    model: Any, config: Any, *, tied: bool, grouped: bool, head: int = HEAD, **more: Any
) -> Architecture:
    heads = KV * GROUP
    words = {
        "intermediate_size": INTER, "num_attention_heads": heads, "head_dim": head, "vocab_size": VOCAB,
        "num_key_value_heads": KV if grouped else heads, "max_position_embeddings": 4096,
        "tie_word_embeddings": tied, "hidden_size": heads * head, **more,
    }  # fmt: skip
    return Architecture(
        lambda layers: built(model, config(num_hidden_layers=layers, **words), HIDDEN),
        ("model.layers",),
        {**PRIMES, "head": (13, head // 13)},
    )


def _decoders() -> dict[str, Architecture]:
    found = {}
    kinds = {
        "llama": (hf.LlamaForCausalLM, hf.LlamaConfig, ((1, 1), (0, 1), (0, 0), (1, 0))),
        "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config, ((1, 1), (0, 1))),
        "qwen3": (hf.Qwen3ForCausalLM, hf.Qwen3Config, ((1, 1), (0, 1))),
    }
    for name, (model, config, pairs) in kinds.items():
        for tied, grouped in pairs:
            full = f"{name}{'-tied' * tied}{'-gqa' * grouped}"
            found[full] = decoder(model, config, tied=bool(tied), grouped=bool(grouped))
    wide = 16 * 13  # heads of Gemma are wider than cuDNN's attention takes
    for grouped in (True, False):
        end = "-gqa" if grouped else ""
        found[f"gemma{end}"] = decoder(
            hf.GemmaForCausalLM, hf.GemmaConfig, tied=True, grouped=grouped, head=wide
        )
    found["gemma2-gqa"] = decoder(
        hf.Gemma2ForCausalLM, hf.Gemma2Config, tied=True, grouped=True, head=wide, query_pre_attn_scalar=wide
    )
    found["gemma3-gqa"] = decoder(
        hf.Gemma3ForCausalLM,
        hf.Gemma3TextConfig,
        tied=True,
        grouped=True,
        head=wide,
        query_pre_attn_scalar=wide,
    )
    return found


EXPERTS, CHOSEN, SHARED = 31, 11, 16 * 37
SPARSE = {**PRIMES, "experts": (31, 1), "chosen": (11, 1)}


def _mixtures() -> dict[str, Architecture]:
    mixtral = decoder(
        hf.MixtralForCausalLM, hf.MixtralConfig, tied=False, grouped=True, num_local_experts=EXPERTS,
        num_experts_per_tok=CHOSEN,
    )  # fmt: skip
    more: dict[str, Any] = {
        "num_experts": EXPERTS, "num_experts_per_tok": CHOSEN, "moe_intermediate_size": INTER,
        "decoder_sparse_step": 1, "mlp_only_layers": [],
    }  # fmt: skip
    qwen2 = decoder(
        hf.Qwen2MoeForCausalLM, hf.Qwen2MoeConfig, tied=False, grouped=True,
        shared_expert_intermediate_size=SHARED, **more,
    )  # fmt: skip
    flat = decoder(
        hf.Qwen2MoeForCausalLM, hf.Qwen2MoeConfig, tied=False, grouped=False,
        shared_expert_intermediate_size=SHARED, **more,
    )  # fmt: skip
    qwen3 = decoder(hf.Qwen3MoeForCausalLM, hf.Qwen3MoeConfig, tied=False, grouped=True, **more)
    return {
        "mixtral-gqa": mixtral._replace(primes=SPARSE),
        "qwen2_moe-gqa": qwen2._replace(primes={**SPARSE, "shared": (37, 16)}),
        "qwen2_moe": flat._replace(primes={**SPARSE, "shared": (37, 16)}),
        "qwen3_moe-gqa": qwen3._replace(primes=SPARSE),
    }


def _phis() -> dict[str, Architecture]:
    def phi3(kv: int, group: int) -> Callable[[int], Any]:
        heads = kv * group
        return lambda layers: built(
            hf.Phi3ForCausalLM,
            hf.Phi3Config(
                hidden_size=heads * HEAD, intermediate_size=INTER, num_attention_heads=heads, num_key_value_heads=kv,
                vocab_size=VOCAB, num_hidden_layers=layers, tie_word_embeddings=False, pad_token_id=0,
                max_position_embeddings=4096, original_max_position_embeddings=4096,
            ),
        )  # fmt: skip

    own = _primes("head", "inter", "vocab")
    rotary = _primes("kv", "head") | {
        "rotary": (29, 2),
        "rest": (23, 2),
        "inter": (31, 16),
        "vocab": (37, 16),
    }

    def phi(layers: int) -> Any:
        return hf.PhiForCausalLM(
            hf.PhiConfig(
                hidden_size=7 * HEAD, intermediate_size=16 * 31, num_attention_heads=7, vocab_size=16 * 37,
                num_hidden_layers=layers, tie_word_embeddings=False, max_position_embeddings=4096,
                partial_rotary_factor=58.5 / HEAD,
            )
        )  # fmt: skip

    return {
        # queries, keys and values are one matrix: `joined` is how many heads that is for each key
        "phi3": Architecture(phi3(11, 1), ("model.layers",), {"kv": (11, 1), **own}),
        "phi3-gqa": Architecture(
            phi3(11, 5), ("model.layers",), {"kv": (11, 1), "group": (5, 1), "joined": (7, 1), **own}
        ),
        "phi": Architecture(phi, ("model.layers",), rotary),
    }


ENCODER = _primes("kv", "head", "inter", "vocab") | {"positions": (31, 16), "types": (37, 1)}


def _encoders() -> dict[str, Architecture]:
    words = {
        "hidden_size": WIDE, "num_attention_heads": 7, "intermediate_size": INTER, "vocab_size": VOCAB,
        "max_position_embeddings": POSITIONS, "type_vocab_size": 37,
    }  # fmt: skip

    def bert(layers: int) -> Any:
        return hf.BertForMaskedLM(hf.BertConfig(num_hidden_layers=layers, **words))

    def roberta(layers: int) -> Any:
        return hf.RobertaForMaskedLM(hf.RobertaConfig(num_hidden_layers=layers, **words))

    def distilbert(layers: int) -> Any:
        return hf.DistilBertForMaskedLM(
            hf.DistilBertConfig(
                dim=WIDE, n_heads=7, hidden_dim=INTER, vocab_size=VOCAB, n_layers=layers,
                max_position_embeddings=POSITIONS,
            )
        )  # fmt: skip

    def vit(layers: int) -> Any:
        return hf.ViTForImageClassification(
            hf.ViTConfig(
                hidden_size=WIDE, num_attention_heads=7, intermediate_size=INTER, num_hidden_layers=layers,
                image_size=GRID * PATCH, patch_size=PATCH, num_labels=LABELS,
            )
        )  # fmt: skip

    return {
        "bert": Architecture(bert, ("bert.encoder.layer",), ENCODER),
        "roberta": Architecture(roberta, ("roberta.encoder.layer",), ENCODER),
        "distilbert": Architecture(
            distilbert,
            ("distilbert.transformer.layer",),
            {name: ENCODER[name] for name in ("kv", "head", "inter", "vocab", "positions")},
        ),
        "vit": Architecture(
            vit,
            ("vit.layers",),
            {
                "kv": (7, 1), "head": (13, 8), "inter": (23, 16), "labels": (29, 16), "grid": (11, 1),
                "tokens": (61, 2), "patch": (37, 1),
            },
            IMAGE,
        ),
    }  # fmt: skip


GRID, PATCH, LABELS = 11, 37, 16 * 29
"""Patches on a side; with the class token they are 122 = 2 · 61."""


def _clip() -> dict[str, Architecture]:
    def clip(layers: int) -> Any:
        text = {
            "hidden_size": 7 * 8 * 13, "num_attention_heads": 7, "intermediate_size": 16 * 23, "vocab_size": 16 * 29,
            "max_position_embeddings": 16 * 31, "num_hidden_layers": layers, "eos_token_id": 2,
        }  # fmt: skip
        vision = {
            "hidden_size": 5 * 8 * 17, "num_attention_heads": 5, "intermediate_size": 16 * 19,
            "image_size": GRID * PATCH, "patch_size": PATCH, "num_hidden_layers": layers,
        }  # fmt: skip
        from transformers.models.clip import modeling_clip

        modeling_clip.contrastive_loss = contrastive_loss
        config = hf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16 * 41)
        return hf.CLIPModel(config)

    primes = {
        "kv": (7, 1), "head": (13, 8), "inter": (23, 16), "vocab": (29, 16), "positions": (31, 16),
        "vision_kv": (5, 1), "vision_head": (17, 8), "vision_inter": (19, 16), "grid": (11, 1), "tokens": (61, 2),
        "patch": (37, 1), "joint": (41, 16),
    }  # fmt: skip
    return {
        "clip": Architecture(
            clip, ("vision_model.encoder.layers", "text_model.encoder.layers"), primes, PAIRS
        )
    }


def _two_sided() -> dict[str, Architecture]:
    def t5(gated: bool, tied: bool) -> Callable[[int], Any]:
        def make(layers: int) -> Any:
            config = hf.T5Config(
                d_model=HIDDEN, d_kv=HEAD, num_heads=7, d_ff=INTER, num_layers=layers, num_decoder_layers=layers,
                vocab_size=VOCAB, feed_forward_proj="gated-gelu" if gated else "relu", tie_word_embeddings=tied,
                decoder_start_token_id=0,
            )  # fmt: skip
            net = hf.T5ForConditionalGeneration(config)
            if not tied:  # transformers 5 ties the head always; in the published weights it is apart
                net.lm_head.weight = torch.nn.Parameter(torch.empty_like(net.lm_head.weight))
            return net

        return make

    def bart(layers: int) -> Any:
        return hf.BartForConditionalGeneration(
            hf.BartConfig(
                d_model=WIDE, encoder_attention_heads=7, decoder_attention_heads=7, encoder_ffn_dim=INTER,
                decoder_ffn_dim=INTER, encoder_layers=layers, decoder_layers=layers, vocab_size=VOCAB,
                max_position_embeddings=POSITIONS - 2,  # two rows more than positions
            )
        )  # fmt: skip

    def whisper(layers: int) -> Any:
        return hf.WhisperForConditionalGeneration(
            hf.WhisperConfig(
                d_model=WIDE, encoder_attention_heads=7, decoder_attention_heads=7, encoder_ffn_dim=INTER,
                decoder_ffn_dim=INTER, encoder_layers=layers, decoder_layers=layers, vocab_size=VOCAB,
                num_mel_bins=37, max_target_positions=POSITIONS, pad_token_id=0, bos_token_id=1, eos_token_id=1,
                decoder_start_token_id=1,
            )
        )  # fmt: skip

    sided = {"kv": (7, 1), "head": (13, 8), "inter": (23, 16), "vocab": (29, 16)}
    both = ("model.encoder.layers", "model.decoder.layers")
    wide = {**sided, "hidden": (19, 16)}
    blocks = ("encoder.block", "decoder.block")
    return {
        "t5-tied": Architecture(t5(False, True), blocks, wide),
        "t5-gated": Architecture(t5(True, False), blocks, wide),
        "bart": Architecture(bart, both, {**sided, "positions": (31, 16)}),
        "whisper": Architecture(whisper, both, {**sided, "positions": (31, 16), "mels": (37, 1)}, SPEECH),
    }


def first() -> dict[str, Architecture]:
    return {**_decoders(), **_mixtures(), **_phis(), **_encoders(), **_clip(), **_two_sided()}


def contrastive_loss(logits: Any) -> Any:
    """CLIP's, but for `len(logits)`, which would fix the batch."""
    return torch.nn.functional.cross_entropy(logits, torch.arange(logits.shape[0]))


FRAMES = 3000
"""What Whisper hears at once: 30 seconds."""


def inputs_of(
    architecture: Architecture, net: Any, sizes: dict[str, Any], half: Any, *, train: bool
) -> dict[str, Any]:
    """What the model is called with."""
    batch = sizes["batch"]
    words: dict[str, Any] = {}
    if architecture.reads == IMAGE:
        side = net.config.image_size
        words["pixel_values"] = torch.randn(batch, 3, side, side, dtype=half)
        return {**words, "labels": torch.randint(0, 100, (batch,))} if train else words
    ids = torch.randint(0, 400, (batch, sizes["seq"]))
    if architecture.reads == PAIRS:
        side = net.config.vision_config.image_size
        words = {"input_ids": ids, "pixel_values": torch.randn(batch, 3, side, side, dtype=half)}
        return {**words, "return_loss": True} if train else words
    if architecture.reads == SPEECH:
        words = {"input_features": torch.randn(batch, net.config.num_mel_bins, FRAMES, dtype=half)}
        return {**words, "labels" if train else "decoder_input_ids": ids}
    words = {"input_ids": ids}
    if train:
        return {**words, "labels": ids}
    return {**words, "decoder_input_ids": ids} if net.config.is_encoder_decoder else words
