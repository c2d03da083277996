"""LSTM translation with additive attention: the decoder is a Python loop over an LSTMCell."""
import random
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

V, E, H, B, S, T = 20000, 512, 1024, 128, 40, 36


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(V, E, padding_idx=0)
        self.rnn = nn.LSTM(E, H // 2, 2, batch_first=True, bidirectional=True, dropout=0.2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embed(x), lengths, batch_first=True, enforce_sorted=False)
        out, (h, c) = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True, total_length=x.size(1))
        return out, torch.cat([h[-2], h[-1]], 1), torch.cat([c[-2], c[-1]], 1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(H, H, bias=False), nn.Linear(H, H, bias=False), nn.Linear(H, 1, bias=False)

    def forward(self, query, keys, values, mask):
        score = self.v(torch.tanh(self.q(query).unsqueeze(1) + keys)).squeeze(-1)
        weight = score.masked_fill(~mask, float("-inf")).softmax(-1)
        return torch.bmm(weight.unsqueeze(1), values).squeeze(1)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.att = nn.Embedding(V, E, padding_idx=0), nn.LSTMCell(E + H, H), Attention()
        self.out, self.drop = nn.Sequential(nn.Linear(2 * H + E, H), nn.Tanh(), nn.Linear(H, V)), nn.Dropout(0.2)

    def forward(self, target, memory, h, c, mask, teacher=1.0):
        keys, token, logits = self.att.k(memory), target[:, 0], []
        for t in range(1, target.size(1)):
            e = self.drop(self.embed(token))
            context = self.att(h, keys, memory, mask)
            h, c = self.cell(torch.cat([e, context], 1), (h, c))
            logits.append(self.out(torch.cat([h, context, e], 1)))
            token = target[:, t] if random.random() < teacher else logits[-1].argmax(1)
        return torch.stack(logits, 1)


device = torch.device("cuda")
encoder, decoder = Encoder().to(device), Decoder().to(device)
optimizer = torch.optim.Adam(list(encoder.parameters()) + list(decoder.parameters()), lr=5e-4)
for step in range(40):
    lengths = torch.randint(S // 2, S + 1, (B,))
    lengths[0] = S
    src = torch.randint(4, V, (B, S))
    src[torch.arange(S)[None] >= lengths[:, None]] = 0
    trg = torch.randint(4, V, (B, T)).to(device)
    src = src.to(device)
    memory, h, c = encoder(src, lengths)
    logits = decoder(trg, memory, h, c, src != 0, teacher=0.8)
    loss = F.cross_entropy(logits.reshape(-1, V), trg[:, 1:].reshape(-1), ignore_index=0)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([p for m in (encoder, decoder) for p in m.parameters()], 5.0)
    optimizer.step()
    print(f"{step:3d} loss {loss.item():.3f}")
