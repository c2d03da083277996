import torch, torchvision
model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=11).cuda().train(); opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for it in range(50):
    images = [torch.rand(3, 320, 320).cuda() for _ in range(16)]; targets = [{"boxes": torch.tensor([[10.0, 20.0, 120.0, 150.0], [100.0, 60.0, 250.0, 300.0]]).cuda(), "labels": torch.tensor([1, 3]).cuda()} for _ in images]; losses = model(images, targets); loss = sum(losses.values()); opt.zero_grad(); loss.backward(); opt.step()
    if it % 10 == 0: print(loss.item())
