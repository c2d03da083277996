"""Distil a frozen teacher into a small student, keep the hardest half of each batch."""
import torch, torch.nn as nn, torch.nn.functional as F
from torchvision import models
from torchvision.transforms import v2
dev = torch.device("cuda"); teacher = models.resnet101(num_classes=200).to(dev).eval(); student = models.mobilenet_v3_large(num_classes=200).to(dev); T, alpha, keep = 4.0, 0.7, 0.5
for p in teacher.parameters(): p.requires_grad = False
aug = v2.Compose([v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]); opt = torch.optim.NAdam(student.parameters(), lr=2e-3); best = float("inf")
for step in range(40):
    x = aug(torch.randint(0, 256, (96, 3, 224, 224), dtype=torch.uint8).to(dev)); y = torch.randint(0, 200, (96,)).to(dev)
    with torch.no_grad(): t = teacher(x)
    s = student(x); kd = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="none").sum(1) * T * T; ce = F.cross_entropy(s, y, reduction="none"); each = alpha * kd + (1 - alpha) * ce; hard = each.topk(int(len(each) * keep)).values; loss = hard.mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if loss.item() < best: best = loss.item()
    elif loss.item() > 10 * best: print("worse"); break
