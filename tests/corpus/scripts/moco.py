import copy, torch, torch.nn as nn, torch.nn.functional as F, torchvision
class MoCo(nn.Module):
    def __init__(self, dim=128, K=65536, m=0.999, T=0.2):
        super().__init__(); self.K, self.m, self.T = K, m, T; self.q = torchvision.models.resnet50(num_classes=dim); w = self.q.fc.in_features; self.q.fc = nn.Sequential(nn.Linear(w, w), nn.ReLU(), self.q.fc); self.k = copy.deepcopy(self.q)
        for p in self.k.parameters(): p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0)); self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))
    @torch.no_grad()
    def _momentum(self):
        for a, b in zip(self.q.parameters(), self.k.parameters()): b.data = b.data * self.m + a.data * (1.0 - self.m)
    @torch.no_grad()
    def _enqueue(self, keys): ptr = int(self.queue_ptr); n = keys.shape[0]; self.queue[:, ptr:ptr + n] = keys.T; self.queue_ptr[0] = (ptr + n) % self.K
    def forward(self, a, b):
        q = F.normalize(self.q(a), dim=1)
        with torch.no_grad(): self._momentum(); idx = torch.randperm(b.size(0)).cuda(); back = torch.argsort(idx); k = F.normalize(self.k(b[idx]), dim=1)[back]
        pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1); neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()]); logits = torch.cat([pos, neg], 1) / self.T; self._enqueue(k); return logits, torch.zeros(logits.shape[0], dtype=torch.long).cuda()
def accuracy(out, y, ks=(1, 5)): _, pred = out.topk(max(ks), 1, True, True); c = pred.t().eq(y.view(1, -1).expand_as(pred.t())); return [c[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / y.size(0)) for k in ks]
model = MoCo().cuda(0); crit = nn.CrossEntropyLoss().cuda(0); opt = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
for i in range(40):
    a, b = (torch.randn(64, 3, 224, 224).cuda(0, non_blocking=True) for _ in range(2)); out, y = model(a, b); loss = crit(out, y); a1, a5 = accuracy(out, y); opt.zero_grad(); loss.backward(); opt.step()
    if i % 10 == 0: print(i, loss.item(), a1[0].item(), a5[0].item())
