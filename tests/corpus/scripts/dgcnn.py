"""DGCNN: classifies point clouds by convolutions over the edges of a graph that changes in every layer."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def knn(x, k):
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    xx = torch.sum(x**2, dim=1, keepdim=True)
    return (-xx - inner - xx.transpose(2, 1)).topk(k=k, dim=-1)[1]


def graph_feature(x, k=20):
    b, c, n = x.size()
    idx = knn(x, k)
    idx = (idx + torch.arange(0, b, device=x.device).view(-1, 1, 1) * n).view(-1)
    x = x.transpose(2, 1).contiguous()
    near = x.view(b * n, -1)[idx, :].view(b, n, k, c)
    x = x.view(b, n, 1, c).repeat(1, 1, k, 1)
    return torch.cat((near - x, x), dim=3).permute(0, 3, 1, 2).contiguous()


class DGCNN(nn.Module):
    def __init__(self, classes=40):
        super().__init__()
        def edge(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2))
        self.edges = nn.ModuleList([edge(6, 64), edge(128, 64), edge(128, 128), edge(256, 256)])
        self.last = nn.Sequential(nn.Conv1d(512, 1024, 1, bias=False), nn.BatchNorm1d(1024), nn.LeakyReLU(0.2))
        self.head = nn.Sequential(nn.Linear(2048, 512, bias=False), nn.BatchNorm1d(512), nn.LeakyReLU(0.2), nn.Dropout(0.5), nn.Linear(512, 256), nn.BatchNorm1d(256), nn.LeakyReLU(0.2), nn.Dropout(0.5), nn.Linear(256, classes))

    def forward(self, x):
        found = []
        for edge in self.edges:
            x = edge(graph_feature(x)).max(dim=-1)[0]
            found.append(x)
        x = self.last(torch.cat(found, 1))
        return self.head(torch.cat([F.adaptive_max_pool1d(x, 1).squeeze(-1), F.adaptive_avg_pool1d(x, 1).squeeze(-1)], 1))


device = torch.device("cuda")
model = DGCNN().to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 250, eta_min=1e-3)
clouds, labels = torch.randn(512, 1024, 3), torch.randint(0, 40, (512,))
for epoch in range(4):
    scheduler.step()
    model.train()
    correct = 0
    for i in range(0, 512, 32):
        data, label = clouds[i : i + 32].to(device).permute(0, 2, 1), labels[i : i + 32].to(device)
        opt.zero_grad()
        logits = model(data)
        loss = F.cross_entropy(logits, label, label_smoothing=0.2)
        loss.backward()
        opt.step()
        correct += (logits.max(dim=1)[1] == label).sum().item()
    print(epoch, loss.item(), correct / 512)
