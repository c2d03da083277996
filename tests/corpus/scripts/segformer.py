import torch
from transformers import SegformerConfig, SegformerForSemanticSegmentation
model = SegformerForSemanticSegmentation(SegformerConfig(num_labels=150, depths=[2, 2, 2, 2], hidden_sizes=[32, 64, 160, 256], decoder_hidden_size=256)).cuda(); opt = torch.optim.AdamW(model.parameters(), lr=6e-5); sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 1 - s / 1000)
for step in range(45):
    x, y = torch.randn(8, 3, 512, 512).cuda(), torch.randint(0, 150, (8, 512, 512)).cuda(); out = model(pixel_values=x, labels=y); out.loss.backward(); opt.step(); opt.zero_grad(); sched.step()
    if step % 15 == 0: print(step, out.loss.item())
