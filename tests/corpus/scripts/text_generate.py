"""Samples from GPT-2 until each text ends or is long enough."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel
m = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=300)).half().cuda().eval()
ids = torch.randint(0, 300, (4, 10), device="cuda")
with torch.no_grad():
    out = m.generate(ids, max_new_tokens=20, do_sample=True, top_p=0.9, temperature=0.8, pad_token_id=0)
print(out.shape, out[0].tolist())
