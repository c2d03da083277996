import math, time, torch, torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
PAD, BOS, EOS, V = 1, 2, 3, 10000; device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
class Pos(nn.Module):
    def __init__(self, d, drop, n=5000): super().__init__(); den = torch.exp(-torch.arange(0, d, 2) * math.log(10000) / d); pos = torch.arange(0, n).reshape(n, 1); pe = torch.zeros((n, d)); pe[:, 0::2] = torch.sin(pos * den); pe[:, 1::2] = torch.cos(pos * den); self.dropout = nn.Dropout(drop); self.register_buffer("pe", pe.unsqueeze(-2))
    def forward(self, x): return self.dropout(x + self.pe[: x.size(0), :])
class Seq2Seq(nn.Module):
    def __init__(self, d=512): super().__init__(); self.t = nn.Transformer(d_model=d, nhead=8, num_encoder_layers=3, num_decoder_layers=3, dim_feedforward=512, dropout=0.1); self.g = nn.Linear(d, V); self.s, self.o = nn.Embedding(V, d), nn.Embedding(V, d); self.p = Pos(d, 0.1); self.d = d
    def forward(self, src, tgt, sm, tm, sp, tp, mp): return self.g(self.t(self.p(self.s(src.long()) * math.sqrt(self.d)), self.p(self.o(tgt.long()) * math.sqrt(self.d)), sm, tm, None, sp, tp, mp))
def masks(src, tgt):
    n = tgt.shape[0]; m = (torch.triu(torch.ones((n, n), device=device)) == 1).transpose(0, 1); m = m.float().masked_fill(m == 0, float("-inf")).masked_fill(m == 1, 0.0); return torch.zeros((src.shape[0],) * 2, device=device).type(torch.bool), m, (src == PAD).transpose(0, 1), (tgt == PAD).transpose(0, 1)
def sentence(n): return torch.cat((torch.tensor([BOS]), torch.randint(4, V, (n,)), torch.tensor([EOS])))
data = [(sentence(20 + i % 11), sentence(18 + i % 13)) for i in range(128 * 42)]
def collate(b): return pad_sequence([s for s, _ in b], padding_value=PAD), pad_sequence([t for _, t in b], padding_value=PAD)
torch.manual_seed(0); model = Seq2Seq()
for p in model.parameters():
    if p.dim() > 1: nn.init.xavier_uniform_(p)
model = model.to(device); crit = nn.CrossEntropyLoss(ignore_index=PAD); opt = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9); model.train(); losses = 0; loader = torch.utils.data.DataLoader(data, batch_size=128, collate_fn=collate)
for src, tgt in loader:
    src, tgt = src.to(device), tgt.to(device); ti = tgt[:-1, :]; sm, tm, sp, tp = masks(src, ti); logits = model(src, ti, sm, tm, sp, tp, sp); opt.zero_grad(); loss = crit(logits.reshape(-1, logits.shape[-1]), tgt[1:, :].reshape(-1)); loss.backward(); opt.step(); losses += loss.item()
print(losses / len(list(loader)))
