import math, time, torch, torch.nn as nn
class LM(nn.Module):
    def __init__(self, V, d, layers, tie=True):
        super().__init__(); self.drop = nn.Dropout(0.4); self.emb = nn.Embedding(V, d); self.rnn = nn.LSTM(d, d, layers, dropout=0.3); self.out = nn.Linear(d, V); self.d, self.layers = d, layers
        if tie: self.out.weight = self.emb.weight
        self.emb.weight.data.uniform_(-0.1, 0.1); self.out.bias.data.zero_()
    def forward(self, x, h): y, h = self.rnn(self.drop(self.emb(x)), h); return self.out(self.drop(y)), h
    def init_hidden(self, b): w = next(self.parameters()); return w.new_zeros(self.layers, b, self.d), w.new_zeros(self.layers, b, self.d)
def repackage(h): return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage(v) for v in h)
def batchify(data, b): n = data.size(0) // b; return data.narrow(0, 0, n * b).view(b, -1).t().contiguous()
def get(source, i, bptt): n = min(bptt, len(source) - 1 - i); return source[i:i + n], source[i + 1:i + 1 + n].view(-1)
torch.manual_seed(1111); V, B, BPTT, lr, clip = 33278, 64, 70, 20.0, 0.25
device = torch.device("cuda"); train = batchify(torch.randint(V, (64 * 70 * 45 + 64,)), B).to(device); val = batchify(torch.randint(V, (64 * 71,)), B).to(device)
model = LM(V, 650, 2).to(device); crit = nn.CrossEntropyLoss()
def evaluate():
    model.eval(); total = 0.0; h = model.init_hidden(B)
    with torch.no_grad():
        for i in range(0, val.size(0) - 1, BPTT): x, y = get(val, i, BPTT); o, h = model(x, h); h = repackage(h); total += len(x) * crit(o.view(-1, V), y).item()
    return total / (len(val) - 1)
best = None
for epoch in range(1, 3):
    model.train(); total, t0, h = 0.0, time.time(), model.init_hidden(B)
    for batch, i in enumerate(range(0, train.size(0) - 1, BPTT)):
        x, y = get(train, i, BPTT); model.zero_grad(); h = repackage(h); o, h = model(x, h); loss = crit(o.view(-1, V), y); loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        for p in model.parameters(): p.data.add_(p.grad, alpha=-lr)
        total += loss.item()
        if batch % 5 == 0 and batch: print("| epoch {:3d} | {:5d} | lr {:02.2f} | loss {:5.2f} | ppl {:8.2f}".format(epoch, batch, lr, total / 5, math.exp(min(total / 5, 20)))); total = 0
    v = evaluate(); print("valid ppl", math.exp(min(v, 20)))
    if not best or v < best: best = v
    else: lr /= 4.0
