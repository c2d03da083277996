"""The zoo's language models: Hugging Face transformers from a config."""

from typing import Any

import transformers as hf


def _causal(name: str, **sizes: int | bool) -> Any:
    return getattr(hf, f"{name}ForCausalLM")(getattr(hf, f"{name}Config")(**sizes))


def _llama(width: int, mlp: int, layers: int, heads: int, tied: bool) -> Any:
    return _causal(
        "Llama",
        vocab_size=128256,
        hidden_size=width,
        intermediate_size=mlp,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=8,
        tie_word_embeddings=tied,
        max_position_embeddings=4096,
    )


def _gpt2(width: int, layers: int, heads: int) -> Any:
    return hf.GPT2LMHeadModel(hf.GPT2Config(n_embd=width, n_layer=layers, n_head=heads))


MODELS = {
    "bert-base": lambda: hf.BertForMaskedLM(hf.BertConfig()),
    "bert-large": lambda: hf.BertForMaskedLM(
        hf.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    ),
    "roberta-base": lambda: hf.RobertaForMaskedLM(
        hf.RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1)
    ),
    "distilbert": lambda: hf.DistilBertForMaskedLM(hf.DistilBertConfig()),
    "gpt2": lambda: _gpt2(768, 12, 12),
    "gpt2-medium": lambda: _gpt2(1024, 24, 16),
    "gpt2-large": lambda: _gpt2(1280, 36, 20),
    "gpt2-xl": lambda: _gpt2(1600, 48, 25),
    "t5-base": lambda: hf.T5ForConditionalGeneration(
        hf.T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12, decoder_start_token_id=0)
    ),
    "llama-1b": lambda: _llama(2048, 8192, 16, 32, tied=True),
    "llama-3b": lambda: _llama(3072, 8192, 28, 24, tied=True),
    "llama-8b": lambda: _llama(4096, 14336, 32, 32, tied=False),
    "qwen2-0.5b": lambda: _causal(
        "Qwen2",
        vocab_size=151936,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    ),
    "opt-1.3b": lambda: _causal(
        "OPT",
        hidden_size=2048,
        num_hidden_layers=24,
        ffn_dim=8192,
        num_attention_heads=32,
        word_embed_proj_dim=2048,
    ),
}
