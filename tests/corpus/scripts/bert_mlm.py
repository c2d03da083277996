import torch
from transformers import BertConfig, BertForMaskedLM
device = torch.device("cuda"); model = BertForMaskedLM(BertConfig(num_hidden_layers=8, hidden_size=512, num_attention_heads=8, intermediate_size=2048)).to(device); opt = torch.optim.AdamW(model.parameters(), lr=1e-4); model.train()
for step in range(45):
    ids = torch.randint(1000, 30000, (32, 256)); labels = ids.clone(); mask = torch.rand(ids.shape) < 0.15; labels[~mask] = -100; ids[mask] = 103; attention = torch.ones_like(ids); attention[:, 240:] = 0
    with torch.amp.autocast("cuda", dtype=torch.bfloat16): loss = model(input_ids=ids.to(device), attention_mask=attention.to(device), labels=labels.to(device)).loss
    opt.zero_grad(); loss.backward(); opt.step()
    if step % 10 == 0: print(step, loss.item())
