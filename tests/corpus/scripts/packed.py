import torch, torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader
import random
class Tagger(nn.Module):
    def __init__(s, v=1000, e=64, h=128, t=10):
        super().__init__(); s.emb = nn.Embedding(v, e, padding_idx=0); s.lstm = nn.LSTM(e, h, num_layers=2, bidirectional=True, batch_first=True, dropout=.3); s.fc = nn.Linear(2 * h, t)
    def forward(s, x, lengths):
        p = pack_padded_sequence(s.emb(x), lengths.cpu(), batch_first=True, enforce_sorted=False); o, (h, c) = s.lstm(p); o, _ = pad_packed_sequence(o, batch_first=True); return s.fc(o)
random.seed(0)
data = [(torch.randint(1, 1000, (n,)), torch.randint(0, 10, (n,))) for n in (random.randint(5, 30) for _ in range(200))]
def collate(b):
    xs, ys = zip(*b); return pad_sequence(xs, batch_first=True), pad_sequence(ys, batch_first=True, padding_value=-100), torch.tensor([len(x) for x in xs])
dl = DataLoader(data, 16, shuffle=True, collate_fn=collate, num_workers=2)
m = Tagger().cuda(); opt = torch.optim.Adam(m.parameters())
for ep in range(3):
    losses = []
    for x, y, l in dl:
        x, y, l = x.cuda(), y.cuda(), l.cuda()
        opt.zero_grad(); out = m(x, l); loss = nn.functional.cross_entropy(out.flatten(0, 1), y.flatten(), ignore_index=-100); loss.backward(); opt.step(); losses.append(loss.item())
    import numpy as np
    print(np.mean(losses))
