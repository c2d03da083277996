import copy, torch, torch.nn as nn, torch.nn.functional as F, torchvision
def backbone(): m = torchvision.models.resnet18(weights=None); m.fc = nn.Identity(); return m
class Head(nn.Module):
    def __init__(self, i=512, o=4096): super().__init__(); self.mlp = nn.Sequential(nn.Linear(i, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 256)); self.last = nn.utils.parametrizations.weight_norm(nn.Linear(256, o, bias=False))
    def forward(self, x): return self.last(F.normalize(self.mlp(x), dim=-1))
class Net(nn.Module):
    def __init__(self): super().__init__(); self.backbone, self.head = backbone(), Head()
    def forward(self, x): return self.head(self.backbone(x))
student = Net().cuda(); teacher = Net().cuda(); teacher.load_state_dict(student.state_dict())
for p in teacher.parameters(): p.requires_grad = False
opt = torch.optim.AdamW(student.parameters(), lr=5e-4, weight_decay=0.04); center = torch.zeros(1, 4096, device="cuda")
for it in range(45):
    crops = [torch.randn(32, 3, 128, 128).cuda() for _ in range(2)] + [torch.randn(32, 3, 64, 64).cuda() for _ in range(4)]; s = [student(c) for c in crops]
    with torch.no_grad(): t = [teacher(c) for c in crops[:2]]
    loss, n = 0, 0
    for i, q in enumerate(t):
        q = F.softmax((q - center) / 0.04, -1).detach()
        for j, p in enumerate(s):
            if i != j: loss, n = loss + torch.sum(-q * F.log_softmax(p / 0.1, -1), -1).mean(), n + 1
    loss = loss / n; opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(student.parameters(), 3.0); opt.step()
    with torch.no_grad():
        for p, q in zip(student.parameters(), teacher.parameters()): q.data.mul_(0.996).add_(p.detach().data, alpha=0.004)
        center = center * 0.9 + torch.cat(t).mean(0, keepdim=True) * 0.1
    if it % 20 == 0: print(it, loss.item())
