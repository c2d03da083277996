"""LoRA by hand: wraps the attention projections of a 1.1B Llama in bf16 and trains only the small matrices."""
import math
import torch
import torch.nn as nn
from transformers import LlamaConfig, LlamaForCausalLM


class LoRALinear(nn.Module):
    def __init__(self, base, r=16, alpha=32, dropout=0.05):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad = False
        self.a = nn.Parameter(torch.empty(r, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))
        self.scale, self.dropout = alpha / r, nn.Dropout(dropout)

    def forward(self, x):
        lora = self.dropout(x).to(self.a.dtype) @ self.a.T @ self.b.T
        return self.base(x) + (lora * self.scale).to(x.dtype)


config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4, use_cache=False)
model = LlamaForCausalLM(config).to(torch.bfloat16)
for p in model.parameters():
    p.requires_grad = False
for layer in model.model.layers:
    layer.self_attn.q_proj = LoRALinear(layer.self_attn.q_proj)
    layer.self_attn.v_proj = LoRALinear(layer.self_attn.v_proj)
model.cuda().train()
trained = [p for p in model.parameters() if p.requires_grad]
print(f"training {sum(p.numel() for p in trained):,} of {sum(p.numel() for p in model.parameters()):,}")
optimizer = torch.optim.AdamW(trained, lr=2e-4, weight_decay=0.0)
ACCUMULATE = 2
for step in range(40):
    total = 0.0
    for micro in range(ACCUMULATE):
        ids = torch.randint(0, 32000, (4, 1024)).cuda()
        loss = model(input_ids=ids, labels=ids).loss / ACCUMULATE
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {total:.4f}")
