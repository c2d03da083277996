"""Serves GPT-2 medium: answers batches of prompts by greedy generation in half precision."""
import time
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(n_embd=1024, n_layer=24, n_head=16)).half().to("cuda").eval()
model.generation_config.pad_token_id = 50256
model.generation_config.eos_token_id = None
with torch.no_grad():
    for batch in range(40):
        prompts = torch.randint(0, 50000, (16, 256)).to("cuda")
        start = time.time()
        out = model.generate(prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=16, do_sample=False)
        print(batch, tuple(out.shape), f"{16 * 16 / (time.time() - start):.0f} tokens/s")
