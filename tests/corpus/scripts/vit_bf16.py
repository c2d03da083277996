import torch, torchvision
torch.set_float32_matmul_precision("high"); model = torchvision.models.vit_b_16(weights=None, num_classes=1000).to("cuda", torch.bfloat16)
decay = [p for n, p in model.named_parameters() if p.ndim > 1]; rest = [p for n, p in model.named_parameters() if p.ndim <= 1]
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=1e-4, fused=True)
for i in range(45):
    x = torch.randn(64, 3, 224, 224).to("cuda", torch.bfloat16); y = torch.randint(0, 1000, (64,)).to("cuda")
    loss = torch.nn.functional.cross_entropy(model(x).float(), y); loss.backward(); opt.step(); opt.zero_grad(set_to_none=True)
    if i % 20 == 0: print(i, loss.item())
