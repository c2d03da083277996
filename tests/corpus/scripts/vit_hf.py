import torch
from transformers import ViTConfig, ViTForImageClassification, get_cosine_schedule_with_warmup
config = ViTConfig(num_labels=100); model = ViTForImageClassification(config).cuda(); model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05, fused=True); scheduler = get_cosine_schedule_with_warmup(optimizer, 10, 200)
for step in range(45):
    pixel_values, labels = torch.randn(48, 3, 224, 224).cuda(), torch.randint(0, 100, (48,)).cuda()
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16): loss = model(pixel_values=pixel_values, labels=labels).loss
    loss.backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); optimizer.step(); scheduler.step(); optimizer.zero_grad()
    if step % 10 == 0: print(f"step {step}: {loss.item():.4f}")
