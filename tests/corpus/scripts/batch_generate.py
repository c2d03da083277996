"""Samples from Qwen2 in batches: prefill, then one token at a time with top-k and top-p, until all have ended."""
import torch
from transformers import DynamicCache, Qwen2Config, Qwen2ForCausalLM

EOS = 151643
config = Qwen2Config(vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2, tie_word_embeddings=True)
model = Qwen2ForCausalLM(config).to(torch.bfloat16).to("cuda").eval()


def choose(logits, temperature=0.8, k=50, p=0.95):
    values, indices = torch.topk(logits.float() / temperature, k)
    probs = values.softmax(-1)
    keep = probs.cumsum(-1) - probs < p
    probs = probs * keep
    pick = torch.multinomial(probs / probs.sum(-1, keepdim=True), 1)
    return indices.gather(-1, pick)


@torch.inference_mode()
def generate(prompt, new=24):
    cache = DynamicCache()
    mask = torch.ones_like(prompt)
    out = model(prompt, attention_mask=mask, past_key_values=cache, use_cache=True, logits_to_keep=1)
    tokens, ended = [], torch.zeros(len(prompt), 1, dtype=torch.bool, device=prompt.device)
    for _ in range(new):
        token = choose(out.logits[:, -1]).masked_fill(ended, EOS)
        ended |= token == EOS
        tokens.append(token)
        if ended.all():
            break
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
        out = model(token, attention_mask=mask, past_key_values=cache, use_cache=True)
    return torch.cat(tokens, 1)


prompts = torch.randint(0, 150000, (32, 1024))
for i in range(40):
    text = generate(prompts.to("cuda"))
    print(i, text.shape)
