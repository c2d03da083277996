import torch
from transformers import BertConfig, BertModel
model = BertModel(BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)).eval().half().to("cuda"); found = []
with torch.no_grad():
    for i in range(60):
        ids = torch.randint(1, 30000, (256, 128)).to("cuda"); mask = torch.ones_like(ids); hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state; m = mask.unsqueeze(-1).to(hidden.dtype); pooled = (hidden * m).sum(1) / m.sum(1).clamp(min=1e-9); found.append(torch.nn.functional.normalize(pooled, dim=1).float().cpu())
print(torch.cat(found).shape)
