import random, torch, torch.nn as nn
torch.manual_seed(0); device = torch.device("cuda")
V, H, B, S, T = 12000, 512, 64, 40, 30
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, 256); self.rnn = nn.GRU(256, H, bidirectional=True); self.fc = nn.Linear(2 * H, H); self.dropout = nn.Dropout(0.3)
    def forward(self, src):
        outputs, hidden = self.rnn(self.dropout(self.embedding(src)))
        return outputs, torch.tanh(self.fc(torch.cat((hidden[-2], hidden[-1]), 1)))
class Attention(nn.Module):
    def __init__(self): super().__init__(); self.attn = nn.Linear(3 * H, H); self.v = nn.Linear(H, 1, bias=False)
    def forward(self, hidden, enc):
        hidden = hidden.unsqueeze(1).repeat(1, enc.shape[0], 1); enc = enc.permute(1, 0, 2)
        return torch.softmax(self.v(torch.tanh(self.attn(torch.cat((hidden, enc), 2)))).squeeze(2), dim=1)
class Decoder(nn.Module):
    def __init__(self):
        super().__init__(); self.attention = Attention(); self.embedding = nn.Embedding(V, 256); self.rnn = nn.GRU(2 * H + 256, H); self.out = nn.Linear(3 * H + 256, V); self.dropout = nn.Dropout(0.3)
    def forward(self, token, hidden, enc):
        e = self.dropout(self.embedding(token.unsqueeze(0))); a = self.attention(hidden, enc).unsqueeze(1); w = torch.bmm(a, enc.permute(1, 0, 2)).permute(1, 0, 2)
        o, hidden = self.rnn(torch.cat((e, w), 2), hidden.unsqueeze(0)); return self.out(torch.cat((o.squeeze(0), w.squeeze(0), e.squeeze(0)), 1)), hidden.squeeze(0)
enc, dec = Encoder().to(device), Decoder().to(device)
params = list(enc.parameters()) + list(dec.parameters()); opt = torch.optim.Adam(params); crit = nn.CrossEntropyLoss(ignore_index=0)
for it in range(60):
    src, trg = torch.randint(1, V, (S, B)).to(device), torch.randint(1, V, (T, B)).to(device)
    opt.zero_grad(); memory, h = enc(src); outs = []
    for t in range(T - 1):
        o, h = dec(trg[t], h, memory); outs.append(o)
    loss = crit(torch.stack(outs).view(-1, V), trg[1:].reshape(-1)); loss.backward(); nn.utils.clip_grad_norm_(params, 1); opt.step()
    if it % 10 == 0: print(f"{it} {loss.item():.3f}")
