import math, torch, torch.nn as nn
from transformers import LlamaConfig, LlamaForCausalLM
class LoRA(nn.Module):
    def __init__(self, base, r=16, alpha=32): super().__init__(); self.base = base; self.a = nn.Parameter(torch.empty(r, base.in_features)); self.b = nn.Parameter(torch.zeros(base.out_features, r)); nn.init.kaiming_uniform_(self.a, a=math.sqrt(5)); self.scale = alpha / r; self.drop = nn.Dropout(0.05)
    def forward(self, x): return self.base(x) + (self.drop(x).to(self.a.dtype) @ self.a.T @ self.b.T * self.scale).to(x.dtype)
model = LlamaForCausalLM(LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=12, num_attention_heads=32, num_key_value_heads=4, vocab_size=32000)).to(torch.bfloat16); model.requires_grad_(False)
for layer in model.model.layers:
    for name in ("q_proj", "v_proj"): setattr(layer.self_attn, name, LoRA(getattr(layer.self_attn, name)))
model.cuda(); model.gradient_checkpointing_enable(); model.enable_input_require_grads(); model.config.use_cache = False; trained = [p for p in model.parameters() if p.requires_grad]; print(sum(p.numel() for p in trained)); opt = torch.optim.AdamW(trained, lr=2e-4)
for step in range(40):
    ids = torch.randint(0, 32000, (4, 1024)).cuda(); loss = model(input_ids=ids, labels=ids).loss; loss.backward(); opt.step(); opt.zero_grad()
    if step % 10 == 0: print(step, f"{loss.item():.3f}")
