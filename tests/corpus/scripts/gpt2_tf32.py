import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel
torch.set_float32_matmul_precision("high")
model = GPT2LMHeadModel(GPT2Config(n_layer=12, n_embd=768, n_head=12)).to("cuda"); model.train()
loader = DataLoader(TensorDataset(torch.randint(0, 50257, (8 * 50, 512))), batch_size=8, shuffle=True); optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
for step, (ids,) in enumerate(loader):
    ids = ids.to("cuda"); out = model(ids, labels=ids); out.loss.backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); optimizer.step(); optimizer.zero_grad(set_to_none=True)
    if step % 20 == 0: print(step, out.loss.item())
