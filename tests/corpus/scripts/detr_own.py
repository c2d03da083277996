"""A DETR: ResNet-50 features, an encoder-decoder, and the matching of boxes to queries on the CPU."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torchvision.ops import box_convert, generalized_box_iou


def linear_assignment(cost):
    """Greedy: cheapest pair first."""
    cost = cost.copy()
    rows, cols = [], []
    for _ in range(min(cost.shape)):
        r, c = np.unravel_index(np.argmin(cost), cost.shape)
        rows.append(r), cols.append(c)
        cost[r, :], cost[:, c] = np.inf, np.inf
    return np.array(rows), np.array(cols)


class MLP(nn.Module):
    def __init__(self, i, h, o, n):
        super().__init__()
        sizes = [i] + [h] * (n - 1) + [o]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class DETR(nn.Module):
    def __init__(self, classes=91, queries=100, d=256):
        super().__init__()
        net = torchvision.models.resnet50(weights=None, norm_layer=torchvision.ops.FrozenBatchNorm2d)
        self.backbone = nn.Sequential(*list(net.children())[:-2])
        for name, p in self.backbone.named_parameters():
            if name.startswith(("0.", "1.", "4.")):
                p.requires_grad_(False)
        self.proj = nn.Conv2d(2048, d, 1)
        self.transformer = nn.Transformer(d, 8, 6, 6, 2048, 0.1, batch_first=True)
        self.query = nn.Embedding(queries, d)
        self.row, self.col = nn.Parameter(torch.rand(50, d // 2)), nn.Parameter(torch.rand(50, d // 2))
        self.classes, self.boxes = nn.Linear(d, classes + 1), MLP(d, d, 4, 3)

    def forward(self, x):
        h = self.proj(self.backbone(x))
        B, C, H, W = h.shape
        pos = torch.cat([self.col[:W].unsqueeze(0).repeat(H, 1, 1), self.row[:H].unsqueeze(1).repeat(1, W, 1)], -1)
        src = pos.flatten(0, 1).unsqueeze(0) + h.flatten(2).transpose(1, 2)
        out = self.transformer(src, self.query.weight.unsqueeze(0).repeat(B, 1, 1))
        return self.classes(out), self.boxes(out).sigmoid()


class Criterion(nn.Module):
    def __init__(self, classes=91):
        super().__init__()
        weight = torch.ones(classes + 1)
        weight[-1] = 0.1
        self.register_buffer("weight", weight)
        self.none = classes

    @torch.no_grad()
    def match(self, logits, boxes, targets):
        B, Q = logits.shape[:2]
        prob, flat = logits.flatten(0, 1).softmax(-1), boxes.flatten(0, 1)
        labels, wanted = torch.cat([t["labels"] for t in targets]), torch.cat([t["boxes"] for t in targets])
        giou = generalized_box_iou(box_convert(flat, "cxcywh", "xyxy"), box_convert(wanted, "cxcywh", "xyxy"))
        cost = 5 * torch.cdist(flat, wanted, p=1) - prob[:, labels] - 2 * giou
        cost = cost.view(B, Q, -1).cpu()
        sizes = [len(t["boxes"]) for t in targets]
        found = [linear_assignment(c[i].numpy()) for i, c in enumerate(cost.split(sizes, -1))]
        return [(torch.as_tensor(i, dtype=torch.int64), torch.as_tensor(j, dtype=torch.int64)) for i, j in found]

    def forward(self, logits, boxes, targets):
        indices = self.match(logits, boxes, targets)
        batch = torch.cat([torch.full_like(src, i) for i, (src, _) in enumerate(indices)])
        src = torch.cat([s for s, _ in indices])
        labels = torch.cat([t["labels"][j] for t, (_, j) in zip(targets, indices)])
        target = torch.full(logits.shape[:2], self.none, dtype=torch.int64, device=logits.device)
        target[batch, src] = labels
        ce = F.cross_entropy(logits.transpose(1, 2), target, self.weight)
        p = boxes[batch, src]
        t = torch.cat([t["boxes"][j] for t, (_, j) in zip(targets, indices)])
        l1 = F.l1_loss(p, t, reduction="sum") / len(t)
        giou = 1 - torch.diag(generalized_box_iou(box_convert(p, "cxcywh", "xyxy"), box_convert(t, "cxcywh", "xyxy")))
        return ce + 5 * l1 + 2 * giou.sum() / len(t)


device = torch.device("cuda")
model, criterion = DETR().to(device), Criterion().to(device)
params = [
    {"params": [p for n, p in model.named_parameters() if "backbone" not in n]},
    {"params": [p for n, p in model.named_parameters() if "backbone" in n and p.requires_grad], "lr": 1e-5},
]
optimizer = torch.optim.AdamW(params, lr=1e-4, weight_decay=1e-4)
for step in range(50):
    images = torch.randn(8, 3, 512, 640).to(device)
    targets = []
    for i in range(8):
        n = 3 + i
        boxes = torch.rand(n, 4) * 0.4 + 0.1
        targets.append({"labels": torch.randint(0, 91, (n,)).to(device), "boxes": boxes.to(device)})
    loss = criterion(*model(images), targets)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
