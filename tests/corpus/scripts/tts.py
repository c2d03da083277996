"""Transformer TTS: phonemes to 80 mel bands, with a convolutional prenet and postnet and a stop token."""
import math
import torch
from torch import nn
import torch.nn.functional as F

PHONEMES, MELS, D = 90, 80, 512


class Positions(nn.Module):
    def __init__(self, d, n=2000):
        super().__init__()
        pe = torch.zeros(n, d)
        pos = torch.arange(0, n).unsqueeze(1).float()
        div = torch.exp(torch.arange(0, d, 2).float() * -(math.log(10000.0) / d))
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        self.register_buffer("pe", pe.unsqueeze(0))
        self.alpha = nn.Parameter(torch.ones(1))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(x + self.alpha * self.pe[:, : x.size(1)])


class ConvNorm(nn.Module):
    def __init__(self, i, o, act=None, p=0.5):
        super().__init__()
        self.conv, self.norm, self.act, self.p = nn.Conv1d(i, o, 5, padding=2), nn.BatchNorm1d(o), act, p

    def forward(self, x):
        x = self.norm(self.conv(x))
        return F.dropout(self.act(x) if self.act else x, self.p, self.training)


class TTS(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(PHONEMES, D, padding_idx=0)
        self.convs = nn.Sequential(*[ConvNorm(D, D, F.relu, 0.2) for _ in range(3)])
        self.prenet = nn.Sequential(nn.Linear(MELS, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, D))
        self.pos_e, self.pos_d = Positions(D), Positions(D)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, 8, 2048, 0.1), 6)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(D, 8, 2048, 0.1), 6)
        self.mel, self.stop = nn.Linear(D, MELS), nn.Linear(D, 1)
        self.postnet = nn.Sequential(ConvNorm(MELS, D, torch.tanh), *[ConvNorm(D, D, torch.tanh) for _ in range(3)], ConvNorm(D, MELS))

    def forward(self, text, mel):
        pad = text == 0
        x = self.convs(self.embed(text).transpose(1, 2)).transpose(1, 2)
        memory = self.encoder(self.pos_e(x).transpose(0, 1), src_key_padding_mask=pad)
        shifted = F.pad(mel, (0, 0, 1, -1))
        causal = nn.Transformer.generate_square_subsequent_mask(mel.size(1)).to(mel.device)
        y = self.decoder(self.pos_d(self.prenet(shifted)).transpose(0, 1), memory, tgt_mask=causal, memory_key_padding_mask=pad)
        y = y.transpose(0, 1)
        before = self.mel(y)
        return before, before + self.postnet(before.transpose(1, 2)).transpose(1, 2), self.stop(y).squeeze(-1)


def main():
    model = TTS().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    noam = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: D**-0.5 * min((s + 1) ** -0.5, (s + 1) * 4000**-1.5))
    for step in range(60):
        text = torch.randint(1, PHONEMES, (24, 120)).cuda()
        mel = torch.randn(24, 700, MELS).cuda()
        gate = torch.zeros(24, 700, device="cuda")
        gate[:, -1] = 1.0
        before, after, stop = model(text, mel)
        loss = F.mse_loss(before, mel) + F.mse_loss(after, mel) + F.binary_cross_entropy_with_logits(stop, gate, pos_weight=torch.tensor(5.0, device="cuda"))
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        noam.step()
        if step % 20 == 0:
            print(f"{step}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
