"""Speech to text with nn.Transformer: a convolutional front end, teacher forcing, label smoothing, Noam schedule."""
import math
import torch
import torch.nn as nn

V, D = 5000, 512


class Positions(nn.Module):
    def __init__(self, d, longest=2000):
        super().__init__()
        pos, div = torch.arange(longest).unsqueeze(1), torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(longest, d)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        self.register_buffer("pe", pe)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(x + self.pe[: x.size(1)])


class ASR(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU())
        self.proj, self.embed, self.pos = nn.Linear(64 * 20, D), nn.Embedding(V, D, padding_idx=0), Positions(D)
        self.net = nn.Transformer(D, 8, 10, 4, 2048, 0.1, batch_first=True)
        self.out = nn.Linear(D, V)

    def forward(self, feats, lengths, tokens):
        x = self.front(feats.unsqueeze(1))
        b, c, t, f = x.shape
        x = self.pos(self.proj(x.transpose(1, 2).reshape(b, t, c * f)))
        pad = torch.arange(t, device=x.device)[None, :] >= (lengths // 4)[:, None]
        causal = nn.Transformer.generate_square_subsequent_mask(tokens.size(1), device=x.device)
        y = self.pos(self.embed(tokens) * math.sqrt(D))
        y = self.net(x, y, tgt_mask=causal, src_key_padding_mask=pad, memory_key_padding_mask=pad, tgt_key_padding_mask=torch.where(tokens == 0, float("-inf"), 0.0), tgt_is_causal=True)
        return self.out(y)


def collate(n):
    lengths = torch.randint(600, 1201, (n,))
    lengths[0] = 1200
    tokens = torch.randint(4, V, (n, 80))
    return torch.randn(n, 1200, 80), lengths, tokens


model = ASR().cuda()
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
noam = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: D**-0.5 * min((s + 1) ** -0.5, (s + 1) * 4000**-1.5))
criterion = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)
for step in range(40):
    feats, lengths, tokens = (each.cuda() for each in collate(24))
    logits = model(feats, lengths, tokens[:, :-1])
    loss = criterion(logits.reshape(-1, V), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    noam.step()
    if step % 5 == 0:
        print(f"step {step}: {loss.item():.4f}, {100 * (logits.argmax(-1) == tokens[:, 1:]).float().mean().item():.1f} %")
