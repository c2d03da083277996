import torch, torchvision
model = torchvision.models.detection.retinanet_resnet50_fpn(weights=None, weights_backbone=None, num_classes=21).to("cuda").train()
opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.005, momentum=0.9, weight_decay=1e-4)
images = [torch.rand(3, 512, 512) for _ in range(8)]
boxes = [torch.tensor([[20.0, 30.0, 200.0, 220.0], [150.0, 150.0, 400.0, 420.0], [300.0, 60.0, 380.0, 140.0]]) for _ in images]
for it in range(45):
    x = [i.to("cuda") for i in images]; t = [{"boxes": b.to("cuda"), "labels": torch.tensor([1, 5, 9]).to("cuda")} for b in boxes]
    losses = model(x, t); loss = sum(losses.values()); opt.zero_grad(); loss.backward(); opt.step()
    if it % 15 == 0: print(it, {k: round(v.item(), 3) for k, v in losses.items()})
