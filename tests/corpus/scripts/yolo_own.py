"""A one-stage detector with a CSP backbone, feature pyramid, CIoU and focal objectness on dense targets."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def cbs(i, o, k=1, s=1):
    return nn.Sequential(nn.Conv2d(i, o, k, s, (k - s + 1) // 2, bias=False), nn.BatchNorm2d(o, eps=1e-3, momentum=0.03), nn.SiLU(inplace=True))


class Bottleneck(nn.Module):
    def __init__(self, c, add=True):
        super().__init__()
        self.a, self.b, self.add = cbs(c, c), cbs(c, c, 3), add

    def forward(self, x):
        y = self.b(self.a(x))
        return x + y if self.add else y


class C3(nn.Module):
    def __init__(self, i, o, n=1, add=True):
        super().__init__()
        h = o // 2
        self.a, self.b, self.c = cbs(i, h), cbs(i, h), cbs(2 * h, o)
        self.m = nn.Sequential(*[Bottleneck(h, add) for _ in range(n)])

    def forward(self, x):
        return self.c(torch.cat([self.m(self.a(x)), self.b(x)], 1))


class SPPF(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b, self.p = cbs(c, c // 2), cbs(c * 2, c), nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        x = self.a(x)
        y1 = self.p(x)
        y2 = self.p(y1)
        return self.b(torch.cat([x, y1, y2, self.p(y2)], 1))


class Yolo(nn.Module):
    def __init__(self, classes=80, w=48):
        super().__init__()
        self.classes = classes
        self.stem = nn.Sequential(cbs(3, w, 6, 2), cbs(w, 2 * w, 3, 2), C3(2 * w, 2 * w, 2))
        self.p3 = nn.Sequential(cbs(2 * w, 4 * w, 3, 2), C3(4 * w, 4 * w, 4))
        self.p4 = nn.Sequential(cbs(4 * w, 8 * w, 3, 2), C3(8 * w, 8 * w, 6))
        self.p5 = nn.Sequential(cbs(8 * w, 16 * w, 3, 2), C3(16 * w, 16 * w, 2), SPPF(16 * w))
        self.l5, self.l4 = cbs(16 * w, 8 * w), cbs(8 * w, 4 * w)
        self.t4, self.t3 = C3(16 * w, 8 * w, 2, False), C3(8 * w, 4 * w, 2, False)
        self.heads = nn.ModuleList(nn.Conv2d(c, 5 + classes, 1) for c in (4 * w, 8 * w, 16 * w))

    def forward(self, x):
        c3 = self.p3(self.stem(x))
        c4 = self.p4(c3)
        c5 = self.p5(c4)
        t4 = self.t4(torch.cat([F.interpolate(self.l5(c5), scale_factor=2), c4], 1))
        t3 = self.t3(torch.cat([F.interpolate(self.l4(t4), scale_factor=2), c3], 1))
        return [h(t).flatten(2).transpose(1, 2) for h, t in zip(self.heads, (t3, t4, c5))]


def ciou(a, b, eps=1e-7):
    inter = (torch.min(a[..., 2:], b[..., 2:]) - torch.max(a[..., :2], b[..., :2])).clamp(0).prod(-1)
    wa, wb = (a[..., 2:] - a[..., :2]), (b[..., 2:] - b[..., :2])
    union = wa.prod(-1) + wb.prod(-1) - inter + eps
    whole = torch.max(a[..., 2:], b[..., 2:]) - torch.min(a[..., :2], b[..., :2])
    apart = ((a[..., :2] + a[..., 2:] - b[..., :2] - b[..., 2:]) ** 2).sum(-1) / 4
    v = 0.405 * (torch.atan(wb[..., 0] / (wb[..., 1] + eps)) - torch.atan(wa[..., 0] / (wa[..., 1] + eps))) ** 2
    iou = inter / union
    with torch.no_grad():
        alpha = v / (v - iou + 1 + eps)
    return iou - apart / ((whole**2).sum(-1) + eps) - alpha * v


model = Yolo().cuda()
groups = [[p for p in model.parameters() if p.ndim > 1], [p for p in model.parameters() if p.ndim <= 1]]
opt = torch.optim.SGD([{"params": groups[0], "weight_decay": 5e-4}, {"params": groups[1]}], lr=0.01, momentum=0.937, nesterov=True)
scaler = torch.amp.GradScaler("cuda")
anchors = sum((640 // s) ** 2 for s in (8, 16, 32))
for it in range(40):
    images = torch.randint(0, 256, (16, 3, 640, 640), dtype=torch.uint8).cuda(non_blocking=True).float() / 255
    is_object = (torch.rand(16, anchors) < 0.01).cuda()
    boxes = torch.rand(16, anchors, 4).sort(-1).values.cuda()
    labels = torch.randint(0, 80, (16, anchors)).cuda()
    with torch.amp.autocast("cuda"):
        out = torch.cat(model(images), 1).float()
        near, far = out[..., :2].sigmoid(), out[..., 2:4].sigmoid()
        found = torch.cat([torch.min(near, far), torch.max(near, far)], -1)
        weight = is_object.float()
        box = ((1 - ciou(found, boxes)) * weight).sum() / weight.sum().clamp(min=1)
        obj = F.binary_cross_entropy_with_logits(out[..., 4], weight)
        kind = F.binary_cross_entropy_with_logits(out[..., 5:], F.one_hot(labels, 80).float(), reduction="none")
        loss = 0.05 * box + obj + 0.5 * (kind.mean(-1) * weight).sum() / weight.sum().clamp(min=1)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad(set_to_none=True)
    if it % 10 == 0:
        print(it, loss.item())
