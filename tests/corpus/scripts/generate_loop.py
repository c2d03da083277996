"""A tiny text server: takes prompts from a queue, answers with greedy decoding over a KV cache."""
import queue, time, torch
from transformers import GPT2Config, GPT2LMHeadModel
device = "cuda" if torch.cuda.is_available() else "cpu"; EOS = 50256
model = GPT2LMHeadModel(GPT2Config(n_layer=24, n_embd=1024, n_head=16)).to(device).half().eval()
requests = queue.Queue()
for i in range(40): requests.put((i, torch.randint(0, 50000, (8, 256))))
@torch.inference_mode()
def answer(ids, new=32):
    ids = ids.to(device); past, out = None, []
    step = model(input_ids=ids, use_cache=True)
    while len(out) < new:
        token = step.logits[:, -1].argmax(-1, keepdim=True); out.append(token)
        if (token == EOS).all(): break
        step = model(input_ids=token, past_key_values=step.past_key_values, use_cache=True)
    return torch.cat(out, 1).cpu().tolist()
while not requests.empty():
    rid, ids = requests.get(); t = time.perf_counter(); tokens = answer(ids); dt = time.perf_counter() - t
    print(f"request {rid}: {len(tokens[0])} tokens, {len(tokens) * len(tokens[0]) / dt:.0f} tokens/s")
