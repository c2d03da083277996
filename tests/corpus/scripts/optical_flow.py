# RAFT from torchvision, trained on synthetic pairs with the sequence loss
import torch, torchvision
from torch.utils.data import DataLoader, Dataset

class Pairs(Dataset):
    def __len__(self): return 240
    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i); a = torch.rand(3, 368, 496, generator=g) * 2 - 1; f = torch.randn(2, 1, 1, generator=g) * 8
        return a, torch.roll(a, (int(f[1]), int(f[0])), (1, 2)), f.expand(2, 368, 496).clone(), torch.ones(368, 496, dtype=torch.bool)

def sequence_loss(preds, flow, valid, gamma=0.8, max_flow=400):
    mag = (flow ** 2).sum(1).sqrt(); valid = valid & (mag < max_flow); loss = 0.0
    for i, p in enumerate(preds): loss = loss + gamma ** (len(preds) - i - 1) * (valid[:, None] * (p - flow).abs()).mean()
    return loss, ((preds[-1] - flow) ** 2).sum(1).sqrt().mean()

model = torchvision.models.optical_flow.raft_large(weights=None).cuda().train()
opt = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=1e-5, eps=1e-8); sched = torch.optim.lr_scheduler.OneCycleLR(opt, 2e-4, 200, pct_start=0.05, anneal_strategy="linear", cycle_momentum=False)
for i, (a, b, flow, valid) in enumerate(DataLoader(Pairs(), batch_size=6, shuffle=True, num_workers=2)):
    a, b, flow, valid = a.cuda(), b.cuda(), flow.cuda(), valid.cuda()
    preds = model(a, b, num_flow_updates=12); loss, epe = sequence_loss(preds, flow, valid)
    opt.zero_grad(); loss.backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0); opt.step(); sched.step()
    if i % 10 == 0: print(i, loss.item(), epe.item())
